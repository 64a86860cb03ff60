"""`fla.ops.delta_rule` and its naive functions."""

from typing import Any

import torch
from torch import Tensor

from kernels.compat.call import call, known
from kernels.delta.chunked import chunked_delta
from kernels.delta.recurrent import recurrent_delta


def delta_rule_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    initial_state: Tensor | None = None,
    output_final_state: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """DeltaNet token by token, heads first: q, k [B, H, T, K]; v [B, H, T, V]; beta [B, H, T] or
    [B, H, T, 1]; state [B, H, K, V]. Returns o in q's dtype and the final state in float32 or None."""
    beta = beta.squeeze(-1) if beta.ndim == v.ndim else beta
    o, final = call(
        recurrent_delta,
        dtype=q.dtype,
        tensors={"q": _swap(q), "k": _swap(k), "v": _swap(v), "beta": _swap(beta)},
        initial_state=initial_state,
        output_final_state=output_final_state,
    )
    return _swap(o), final


def delta_rule_chunkwise(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, chunk_size: int = 32
) -> tuple[Tensor, Tensor]:
    """DeltaNet in chunks, heads first as ``delta_rule_recurrence``, beta [B, H, T]; computes in float64 for
    float64 inputs. Returns o and the final state in the dtype of the inputs."""
    o, final = chunked_delta(
        *(_swap(x) for x in (q, k, v, beta)), chunk_size=chunk_size, output_final_state=True
    )
    return _swap(o), final.to(k.dtype)


def chunk_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    cu_seqlens_cpu: torch.LongTensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """DeltaNet in chunks: q, k [B, T, H, K]; v [B, T, H, V]; beta [B, T, H]; state [N, H, K, V]. Returns o in
    q's dtype and the final state in float32 or None. One more keyword: chunk_size."""
    (chunk_size,) = known(kwargs, chunk_size=64)
    return call(
        chunked_delta,
        dtype=q.dtype,
        tensors={"q": q, "k": k, "v": v, "beta": beta},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        chunk_size=chunk_size,
        qk_l2norm=use_qk_l2norm_in_kernel,
    )


def fused_recurrent_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """As ``chunk_delta_rule``, token by token; beta is 1 when not given, and has no value channels."""
    beta = torch.ones(v.shape[:3], device=v.device) if beta is None else beta
    return call(
        recurrent_delta,
        dtype=q.dtype,
        tensors={"q": q, "k": k, "v": v, "beta": beta},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        qk_l2norm=use_qk_l2norm_in_kernel,
    )


def _swap(x: Tensor) -> Tensor:
    """[B, H, T, ...] to [B, T, H, ...] and back."""
    return x.transpose(1, 2)
