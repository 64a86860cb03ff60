"""The backward pass of tiled softmax attention in Triton, from the saved logsumexp."""

import torch
from torch import Tensor

from kernels.softmax.arguments import Packing
from kernels.softmax.triton_blocks import key_blocks, query_blocks
from kernels.softmax.triton_gradients import keys_kernel, queries_kernel
from kernels.triton_runtime import LAUNCH, triton, width


def backward(
    grad_o: Tensor,
    grad_logsumexp: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    slopes: Tensor | None,
    sink: Tensor | None,
    o: Tensor,
    logsumexp: Tensor,
    cu_seqlens: Tensor | None,
    cu_seqlens_k: Tensor | None,
    causal: bool,
    window: int | None,
    tile_size: int,
    precision: str,
) -> tuple[Tensor | None, ...]:
    """Gradients of q, k, v, g, slopes, sink; None for each that is None.

    The formulas are those of `kernels.softmax.backward`, in two kernels that form the weights again: one by
    queries, one by keys, so that nothing is added up in an order that varies. A decay needs one number more
    per pair of tiles.
    """
    batch, key_heads, group, tokens, width_k = q.shape
    keys, width_v = v.shape[-2:]
    heads = key_heads * group
    # The weighted mean of the gradients of a row's exponents: sum_j p_j (grad_o . v_j) = grad_o . o.
    mean = (grad_o * o).sum(-1) - grad_logsumexp
    # An option that is not there is never read.
    read = [q if x is None else x.contiguous() for x in (q, k, v, g, slopes, logsumexp, mean, grad_o)]
    layout = (Packing(cu_seqlens, cu_seqlens_k), tokens, keys, tile_size, q.device)
    blocks, blocks_of_keys = query_blocks(*layout), key_blocks(*layout)
    d_q, d_k, d_v = (x.new_empty(x.shape) for x in (q, k, v))
    d_g = q.new_empty(0) if g is None else g.new_empty(g.shape)
    tiles = triton.cdiv(keys, tile_size)
    per_block, per_pair = (batch, heads, len(blocks)), (batch, heads, len(blocks), tiles)
    d_slopes = q.new_empty(per_block if slopes is not None else 0)
    by_row = q.new_empty(logsumexp.shape if g is not None else 0)
    totals = q.new_zeros(per_pair if g is not None else 0)
    sizes = (tiles, tokens, keys, heads, group, 0 if window is None else window)
    constants = LAUNCH | {
        "K": width_k,
        "BK": width(width_k),
        "V": width_v,
        "BV": width(width_v),
        "TILE": tile_size,
        "GATED": g is not None,
        "SLOPED": slopes is not None,
        "CAUSAL": causal,
        "WINDOWED": window is not None,
        "P": precision,
    }
    queries_kernel[(len(blocks), batch * heads)](
        *read, d_q, d_slopes, by_row, totals, blocks, *sizes, **constants
    )
    up_to = totals.cumsum(-1) if g is not None else totals
    keys_kernel[(len(blocks_of_keys), batch * key_heads)](
        *read, d_k, d_v, d_g, by_row, up_to, blocks_of_keys, len(blocks), *sizes, **constants
    )
    d_sink = None
    if sink is not None:
        weight = (sink.unsqueeze(-1) - logsumexp.masked_fill(logsumexp == -torch.inf, 0.0)).exp()
        d_sink = -(weight * mean).sum((0, 3))
    return (
        d_q,
        d_k,
        d_v,
        None if g is None else d_g,
        None if slopes is None else d_slopes.sum((0, 2)).view(slopes.shape),
        d_sink,
    )
