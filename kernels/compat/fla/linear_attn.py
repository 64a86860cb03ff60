"""`fla.ops.linear_attn` and its naive functions."""

from itertools import pairwise

import torch
from torch import Tensor

from kernels.compat.call import call, restored_time, reversed_time
from kernels.linear.chunked import chunked_linear
from kernels.linear.recurrent import recurrent_linear

State = Tensor | tuple[Tensor, Tensor]
"""S [N, H, K, V]; with the normaliser (S, z), z [N, 1, H, K] the sum of the keys."""

EPSILON = 1e-10
"""Added to the normaliser, as the original does."""


def naive_recurrent_linear_attn(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    initial_state: State | None = None,
    output_final_state: bool = False,
    normalize: bool = False,
) -> tuple[Tensor, State | None]:
    """Linear attention token by token: q, k [B, T, H, K]; v [B, T, H, V]. Returns o in q's dtype and the
    final state in float32, or None."""
    start, keys = _split(initial_state, normalize)
    o, final = call(
        recurrent_linear,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v},
        scale=scale,
        initial_state=start,
        output_final_state=output_final_state,
    )
    if normalize:
        o, keys = _normalise(o, q, k, scale, keys, None)
        final = final if final is None else (final, keys)
    return o.to(q.dtype), final


def naive_chunk_linear_attn(
    q: Tensor, k: Tensor, v: Tensor, scale: float | None = None, normalize: bool = False
) -> Tensor:
    """Linear attention in chunks, o alone, in the dtype of the inputs; computes in float64 for float64."""
    o, _ = chunked_linear(q, k, v, scale=scale)
    return _normalise(o, q, k, scale, None, None)[0].to(q.dtype) if normalize else o


def chunk_linear_attn(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    initial_state: State | None = None,
    output_final_state: bool = False,
    normalize: bool = True,
    cu_seqlens: torch.LongTensor | None = None,
) -> tuple[Tensor, State | tuple[None, Tensor] | None]:
    """Linear attention in chunks, normalised unless told otherwise; o in q's dtype.

    With ``normalize`` the state is a pair, of which the sum of keys is returned in any case, as there.
    """
    start, keys = _split(initial_state, normalize)
    o, final = call(
        chunked_linear,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v},
        scale=scale,
        initial_state=start,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
    )
    if not normalize:
        return o.to(q.dtype), final
    o, keys = _normalise(o, q, k, scale, keys, cu_seqlens)
    return o.to(q.dtype), (final, keys)


fused_chunk_linear_attn = chunk_linear_attn


def fused_recurrent_linear_attn(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    initial_state: State | None = None,
    output_final_state: bool = False,
    reverse: bool = False,
    normalize: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
) -> tuple[Tensor, State | tuple[None, Tensor] | None]:
    """As ``chunk_linear_attn``, token by token, from the last token to the first with ``reverse``."""
    start, keys = _split(initial_state, normalize)
    offsets: Tensor | None = cu_seqlens
    tensors: dict[str, Tensor | None] = {"q": q, "k": k, "v": v}
    if reverse:
        tensors, offsets, start = reversed_time(tensors, offsets, start)
        keys = keys.flip(0) if keys is not None and offsets is not None else keys
    o, final = call(
        recurrent_linear,
        dtype=torch.float32,
        tensors=tensors,
        scale=scale,
        initial_state=start,
        output_final_state=output_final_state,
        cu_seqlens=offsets,
    )
    if normalize:
        o, keys = _normalise(o, tensors["q"], tensors["k"], scale, keys, offsets)
    if reverse:
        o, final = restored_time(o, final, offsets)
        keys = keys.flip(0) if keys is not None and offsets is not None else keys
    return o.to(q.dtype), (final, keys) if normalize else final


def _split(state: State | None, normalize: bool) -> tuple[Tensor | None, Tensor | None]:
    """S and z of an initial state, z None where there is none."""
    return state if normalize and isinstance(state, tuple) else (state, None)


def _normalise(
    o: Tensor,
    q: Tensor,
    k: Tensor,
    scale: float | None,
    keys: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """o / (scale q . z + 1e-10) with z the running sum of the keys, and z at the end of each sequence."""
    dtype = torch.promote_types(o.dtype, torch.float32)
    batch, tokens, heads, width = k.shape
    scale = width**-0.5 if scale is None else scale
    offsets = [0, tokens] if cu_seqlens is None else cu_seqlens.tolist()
    runs = batch if cu_seqlens is None else len(offsets) - 1
    start = torch.zeros(runs, 1, heads, width, device=k.device) if keys is None else keys
    sums, ends = [], []
    for n, (first, last) in enumerate(pairwise(offsets)):
        before = start.to(dtype) if cu_seqlens is None else start[n : n + 1].to(dtype)
        running = torch.cat([before, before + k[:, first:last].to(dtype).cumsum(1)], dim=1)
        sums.append(running[:, 1:])
        ends.append(running[:, -1:])
    weight = (q.to(dtype) * scale * torch.cat(sums, dim=1)).sum(-1, keepdim=True)
    return o.to(dtype) / (weight + EPSILON), torch.cat(ends)
