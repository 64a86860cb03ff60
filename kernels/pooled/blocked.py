"""Pooled attention as two tiled softmax attentions, over slots and over the last tokens, merged."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernels.arguments import working_dtype
from kernels.pooled.pool import check_pooling, pool
from kernels.softmax.arguments import Packing, prepare, sequences
from kernels.softmax.merge import merge_softmax
from kernels.softmax.tiled import tiled_softmax


def blocked_pooled(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    gate: Tensor | None = None,
    *,
    stride: int,
    overlap: bool = False,
    window: int | None = None,
    scale: float | None = None,
    sink: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    tile_size: int = 256,
    check: bool = False,
) -> Tensor:
    """Pooled attention in float32, or in float64 for float64 inputs, differentiable in every tensor.

    Options, shapes and conventions are those of ``kernels.pooled.reference.reference_pooled``. Queries at the
    same place r of their strides see slot b alike: a query in stride c sees the slots before c, so that place
    by place this is causal attention, run as m times the heads over T / m rows. It and the window of single
    tokens merge exactly (claim flash.online-softmax). Memory, backward pass and numerics are those of
    ``kernels.softmax.tiled.tiled_softmax``: no T x (S / m) matrix exists.

    An output depends on no later token, bit for bit, as long as that token is finite. Returns o [B, T, H, V]
    in v's dtype. Raises ValueError as the reference does, and for ``tile_size`` < 1.
    """
    packing = Packing(cu_seqlens, cu_seqlens_k)
    check_pooling(q, k, gate, stride, window)
    prepare(q, k, v, scale=scale, sink=sink, packing=packing, check=check)
    dtype = working_dtype(q.dtype)
    q, k, v_working = q.to(dtype), k.to(dtype), v.to(dtype)
    gate = None if gate is None else gate.to(dtype)
    outputs = [q.new_zeros(q.shape[0], 0, q.shape[2], v.shape[3])]
    for queries, keys in sequences(packing, q.shape[1], k.shape[1]):
        own = (q[:, queries], k[:, keys], v_working[:, keys], None if gate is None else gate[:, keys])
        check_pooling(*own[:2], None, stride, window)
        outputs.append(_attend(*own, stride, overlap, window, scale, sink, tile_size))
    return torch.cat(outputs, dim=1).to(v.dtype)


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    gate: Tensor | None,
    stride: int,
    overlap: bool,
    window: int | None,
    scale: float | None,
    sink: Tensor | None,
    tile_size: int,
) -> Tensor:
    """o [B, T, H, V] of one sequence, in the working precision."""
    window = stride if window is None else window

    def attend(
        q: Tensor, k: Tensor, v: Tensor, sink: Tensor | None, window: int | None
    ) -> tuple[Tensor, Tensor]:
        o, logsumexp = tiled_softmax(
            q, k, v, scale=scale, sink=sink, window=window, tile_size=tile_size, output_logsumexp=True
        )
        assert logsumexp is not None
        return o, logsumexp

    places, restore = _by_place(q, k.shape[1], stride)
    slots = pool(k, gate, stride, overlap), pool(v, gate, stride, overlap)
    # With a window the sink counts there, once.
    own_sink = sink.repeat_interleave(stride, dim=0) if sink is not None and window == 0 else None
    o, logsumexp = (restore(x) for x in attend(places, *slots, own_sink, None))
    if window == 0:
        return o
    return merge_softmax(o, logsumexp, *attend(q, k, v, sink, window))[0]


def _by_place(q: Tensor, keys: int, stride: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The last T of ``keys`` tokens, q [B, T, H, K], as [B, rows, H * stride, K], and the way back.

    The query after u tokens (its own included) sees the slots before u // stride. Rows of one stride each,
    from the first query's to the last's, with the place in the stride beside the head, see them causally.
    """
    tokens, heads = q.shape[1:3]
    before = (keys - tokens + 1) % stride
    rows = -(-(before + tokens) // stride)
    padded = pad(q, (0, 0, 0, 0, before, rows * stride - before - tokens))
    places = padded.reshape(len(q), rows, stride, *q.shape[2:]).transpose(2, 3).flatten(2, 3)

    def restore(x: Tensor) -> Tensor:
        apart = x.reshape(*x.shape[:2], heads, stride, *x.shape[3:])
        return apart.transpose(2, 3).flatten(1, 2)[:, before : before + tokens]

    return places, restore
