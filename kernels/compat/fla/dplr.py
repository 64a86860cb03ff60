"""`fla.ops.generalized_delta_rule`: transitions diagonal plus rank one, and their naive functions."""

from typing import Any

import torch
from torch import Tensor

from kernels.compat.call import call, known, restored_time, reversed_time, unsupported
from kernels.dplr.chunked import chunked_dplr
from kernels.dplr.recurrent import recurrent_dplr


def dplr_recurrence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gk: Tensor,
    initial_state: Tensor | None = None,
    output_final_state: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """DPLR token by token, heads first: all [B, H, T, K] but v [B, H, T, V]; ``alpha`` reads the state before
    its decay e^gk, ``beta`` writes what it read; state [B, H, K, V]. Returns o in q's dtype and the final
    state in float32 or None."""
    o, final = call(
        recurrent_dplr,
        dtype=q.dtype,
        tensors=_swapped(q=q, k=k, v=v, a=alpha, b=beta, g=gk),
        initial_state=initial_state,
        output_final_state=output_final_state,
    )
    return o.transpose(1, 2), final


def dplr_chunkwise(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    alpha: Tensor,
    beta: Tensor,
    gk: Tensor,
    initial_state: Tensor | None = None,
    output_final_state: bool = True,
    chunk_size: int = 32,
) -> tuple[Tensor, Tensor | None]:
    """As ``dplr_recurrence``, in chunks of any size, for any T; o in float32."""
    o, final = call(
        chunked_dplr,
        dtype=torch.float32,
        tensors=_swapped(q=q, k=k, v=v, a=alpha, b=beta, g=gk),
        initial_state=initial_state,
        output_final_state=output_final_state,
        chunk_size=chunk_size,
    )
    return o.transpose(1, 2), final


def chunk_dplr_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    gk: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    cu_seqlens_cpu: torch.LongTensor | None = None,
    safe_gate: bool = False,
    chunk_size: int | None = None,
    disable_recompute: bool = False,
    cp_context: Any = None,
    lower_bound: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """DPLR in chunks: all [B, T, H, K] but v [B, T, H, V]; gk a log decay; state [N, H, K, V]. Returns o in
    q's dtype and the final state in float32 or None. ``lower_bound`` promises a bound on gk that this form
    does not need; ``chunk_size`` is 16 when not given."""
    unsupported(cp_context=cp_context)
    known(kwargs)
    return call(
        chunked_dplr,
        dtype=q.dtype,
        tensors={"q": q, "k": k, "v": v, "a": a, "b": b, "g": gk},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        chunk_size=16 if chunk_size is None else chunk_size,
    )


def fused_recurrent_dplr_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    gk: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    reverse: bool = False,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """As ``chunk_dplr_delta_rule``, token by token, from the last token to the first with ``reverse``; o in
    v's dtype."""
    tensors: dict[str, Tensor | None] = {"q": q, "k": k, "v": v, "a": a, "b": b, "g": gk}
    if reverse:
        tensors, cu_seqlens, initial_state = reversed_time(tensors, cu_seqlens, initial_state)
    result = call(
        recurrent_dplr,
        dtype=v.dtype,
        tensors=tensors,
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
    )
    return restored_time(*result, cu_seqlens) if reverse else result


def _swapped(**tensors: Tensor) -> dict[str, Tensor | None]:
    """[B, H, T, ...] to [B, T, H, ...]."""
    return {name: x.transpose(1, 2) for name, x in tensors.items()}
