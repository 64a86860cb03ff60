"""`fla.ops.simple_gla`: linear attention with one decay per head, which is Mamba-2 with a scale."""

from typing import Any

import torch
from torch import Tensor

from kernels.compat.call import call, known, restored_time, reversed_time
from kernels.mamba2.chunked import chunked_mamba2
from kernels.mamba2.recurrent import recurrent_mamba2


def naive_recurrent_simple_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Simple GLA token by token: q, k [B, T, H, K]; v [B, T, H, V]; g [B, T, H], log decay; state
    [B, H, K, V]. Returns o in q's dtype and the final state in float32, or None."""
    return call(
        recurrent_mamba2,
        dtype=q.dtype,
        tensors={"q": q, "k": k, "v": v, "g": g},
        scale=_scale(q, scale),
        initial_state=initial_state,
        output_final_state=output_final_state,
    )


def naive_chunk_simple_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
    scale: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """As ``naive_recurrent_simple_gla``, in chunks; o in float32."""
    return call(
        chunked_mamba2,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v, "g": g},
        scale=_scale(q, scale),
        initial_state=initial_state,
        output_final_state=output_final_state,
        chunk_size=chunk_size,
    )


def chunk_simple_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    g_gamma: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    cu_seqlens_cpu: torch.LongTensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Simple GLA in chunks; o in q's dtype. One more keyword: chunk_size.

    g [B, T, H] and g_gamma [H] are log decays per token and for all tokens, none when not given, both when
    both are: as in ``fused_recurrent_simple_gla``, where the original's chunked state is another one.
    """
    (chunk_size,) = known(kwargs, chunk_size=None)
    return call(
        chunked_mamba2,
        dtype=q.dtype,
        tensors={"q": q, "k": k, "v": v, "g": _decay(v, g, g_gamma)},
        scale=_scale(q, scale),
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first,
        cu_seqlens=cu_seqlens,
        chunk_size=64 if chunk_size is None else chunk_size,
    )


def fused_recurrent_simple_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    g_gamma: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    reverse: bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """As ``chunk_simple_gla``, token by token, from the last token to the first with ``reverse``."""
    known(kwargs)
    offsets: Tensor | None = cu_seqlens
    tensors: dict[str, Tensor | None] = {"q": q, "k": k, "v": v, "g": _decay(v, g, g_gamma)}
    if reverse:
        tensors, offsets, initial_state = reversed_time(tensors, offsets, initial_state)
    result = call(
        recurrent_mamba2,
        dtype=q.dtype,
        tensors=tensors,
        scale=_scale(q, scale),
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first,
        cu_seqlens=offsets,
    )
    return restored_time(*result, offsets) if reverse else result


def _scale(q: Tensor, scale: float | None) -> float:
    return q.shape[-1] ** -0.5 if scale is None else scale


def _decay(v: Tensor, g: Tensor | None, g_gamma: Tensor | None) -> Tensor:
    decay = torch.zeros(v.shape[:3], device=v.device) if g is None else g.float()
    if g_gamma is None:
        return decay
    if g_gamma.shape != v.shape[2:3]:
        raise ValueError(
            f"g_gamma must have shape {[*v.shape[2:3]]}, but its shape is {list(g_gamma.shape)}."
        )
    return decay + g_gamma.float()
