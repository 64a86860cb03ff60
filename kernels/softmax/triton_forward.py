"""The forward pass of tiled softmax attention in Triton."""

from torch import Tensor

from kernels.softmax.arguments import Packing
from kernels.softmax.triton_blocks import query_blocks
from kernels.softmax.triton_exponents import exponents, key_tiles, load_tile, sums_after
from kernels.triton_runtime import LAUNCH, tl, triton, width


@triton.jit
def softmax_kernel(
    q, k, v, g, slopes, sink, o, logsumexp, blocks, tokens, keys, heads, group, window,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, TILE: tl.constexpr,
    GATED: tl.constexpr, SLOPED: tl.constexpr, SINK: tl.constexpr, CAUSAL: tl.constexpr,
    WINDOWED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """The queries of one head at the positions of one tile, against key tiles from the last to the first.

    The running maximum, sum and output are those of `kernels.softmax.forward`. A decay is split at the start
    of the queries' tile and summed tile by tile, never subtracted; on the diagonal each segment is summed.
    """
    entry = blocks + 5 * tl.program_id(0)
    first_query = tl.load(entry)
    query_count = tl.load(entry + 1)
    first_key = tl.load(entry + 2)
    key_count = tl.load(entry + 3)
    tile = tl.load(entry + 4)
    head = tl.program_id(1).to(tl.int64)
    channels = tl.arange(0, BK)
    columns = tl.arange(0, BV)
    row = tl.arange(0, TILE)
    offset = key_count - query_count
    position = tile * TILE + row
    real = (position >= offset) & (position < key_count)
    queries = head * tokens + first_query - offset
    rows_of_keys = head // group * keys + first_key
    gates = g + head * keys + first_key
    query = load_tile(q, queries, position, channels, K, real)
    output = tl.zeros((TILE, BV), dtype=query.dtype)
    total = tl.zeros((TILE,), dtype=query.dtype)
    if SINK:
        largest = total + tl.load(sink + head % heads)
        total += tl.where(largest > -float("inf"), 1.0, 0.0)
    else:
        largest = total - float("inf")
    own = tl.zeros_like(largest)
    out_of = own
    slope = 0.0
    if GATED:
        own = tl.load(gates + position, mask=(position >= 0) & (position < key_count), other=0.0)
        between = tl.sum(tl.zeros_like(own), axis=0)
    if SLOPED:
        slope = tl.load(slopes + head % heads)
    low, high = key_tiles(tile, offset, key_count, window, TILE, CAUSAL, WINDOWED)
    for step in range(0, high - low):
        other = high - 1 - step
        place = other * TILE + row
        present = place < key_count
        key = load_tile(k, rows_of_keys, place, channels, K, present)
        if GATED:
            out_of = between + sums_after(gates, place, key_count, TILE)
            if other < tile:
                between += tl.sum(tl.load(gates + place), axis=0)
        x = exponents(
            query, key, own, out_of, slope, position, place, real, present, other == tile, window,
            GATED, SLOPED, CAUSAL, WINDOWED, P,
        )  # fmt: skip
        grown = tl.maximum(largest, tl.max(x, axis=1))
        reference = tl.where(grown == -float("inf"), 0.0, grown)
        weights = tl.exp(x - reference[:, None])
        shrink = tl.exp(largest - reference)
        largest = grown
        total = total * shrink + tl.sum(weights, axis=1)
        value = load_tile(v, rows_of_keys, place, columns, V, present)
        output = output * shrink[:, None] + tl.dot(weights, value, input_precision=P)
    total = tl.where(total == 0, 1.0, total)
    output /= total[:, None]
    wide = real[:, None] & (columns[None, :] < V)
    tl.store(o + (queries + position)[:, None] * V + columns[None, :], output, mask=wide)
    tl.store(logsumexp + queries + position, largest + tl.log(total), mask=real)


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    slopes: Tensor | None,
    sink: Tensor | None,
    cu_seqlens: Tensor | None,
    cu_seqlens_k: Tensor | None,
    causal: bool,
    window: int | None,
    tile_size: int,
    precision: str,
) -> tuple[Tensor, Tensor]:
    """o [B, HKV, G, T, V] and logsumexp [B, HKV, G, T] of prepared arguments, in their precision.

    Tiles of 16, 32, 64 or 128 queries and keys; at most 128 key channels, and as many value channels.
    """
    batch, key_heads, group, tokens, width_k = q.shape
    keys, width_v = v.shape[-2:]
    o, logsumexp = q.new_empty(*q.shape[:-1], width_v), q.new_empty(q.shape[:-1])
    blocks = query_blocks(Packing(cu_seqlens, cu_seqlens_k), tokens, keys, tile_size, q.device)
    # An option that is not there is never read.
    tensors = [q if x is None else x.contiguous() for x in (q, k, v, g, slopes, sink)]
    softmax_kernel[(len(blocks), batch * key_heads * group)](
        *tensors,
        o,
        logsumexp,
        blocks,
        tokens,
        keys,
        key_heads * group,
        group,
        0 if window is None else window,
        K=width_k,
        BK=width(width_k),
        V=width_v,
        BV=width(width_v),
        TILE=tile_size,
        GATED=g is not None,
        SLOPED=slopes is not None,
        SINK=sink is not None,
        CAUSAL=causal,
        WINDOWED=window is not None,
        P=precision,
        **LAUNCH,
    )
    return o, logsumexp
