"""The Triton kernels of the backward pass of tiled softmax attention."""

from kernels.softmax.triton_exponents import exponents, key_tiles, load_tile, query_tiles, sums_after
from kernels.triton_runtime import tl, triton


@triton.jit
def queries_kernel(
    q, k, v, g, slopes, logsumexp, mean, d_o, d_q, d_slopes, by_row, totals, blocks,
    tiles, tokens, keys, heads, group, window,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, TILE: tl.constexpr,
    GATED: tl.constexpr, SLOPED: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """The gradient of the queries of one head in one tile, and this tile's part of that of the slopes.

    For the decays, of the gradients of the exponents outside the diagonal: the sum for each query, by_row
    [heads, T], and for each key tile, totals [heads, blocks, tiles].
    """
    entry = blocks + 5 * tl.program_id(0)
    first_query = tl.load(entry)
    query_count = tl.load(entry + 1)
    first_key = tl.load(entry + 2)
    key_count = tl.load(entry + 3)
    tile = tl.load(entry + 4)
    head = tl.program_id(1).to(tl.int64)
    part = head * tl.num_programs(0) + tl.program_id(0)
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
    upstream = load_tile(d_o, queries, position, columns, V, real)
    level = tl.load(logsumexp + queries + position, mask=real, other=0.0)
    level = tl.where(level == -float("inf"), 0.0, level)
    center = tl.load(mean + queries + position, mask=real, other=0.0)
    d_query = tl.zeros_like(query)
    own = tl.zeros_like(level)
    d_row = tl.zeros_like(level)
    d_slope = tl.zeros_like(level)
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
        value = load_tile(v, rows_of_keys, place, columns, V, present)
        if GATED:
            out_of = between + sums_after(gates, place, key_count, TILE)
            if other < tile:
                between += tl.sum(tl.load(gates + place), axis=0)
        x = exponents(
            query, key, own, out_of, slope, position, place, real, present, other == tile, window,
            GATED, SLOPED, CAUSAL, WINDOWED, P,
        )  # fmt: skip
        d_x = tl.dot(upstream, tl.trans(value), input_precision=P) - center[:, None]
        d_x *= tl.exp(x - level[:, None])
        d_query += tl.dot(d_x, key, input_precision=P)
        if SLOPED:
            d_slope -= tl.sum(d_x * tl.abs(position[:, None] - place[None, :]).to(x.dtype), axis=1)
        if GATED:
            across = tl.sum(tl.where(other < tile, d_x, 0.0), axis=1)
            d_row += across
            tl.store(totals + part * tiles + other, tl.sum(across, axis=0))
    wide = real[:, None] & (channels[None, :] < K)
    tl.store(d_q + (queries + position)[:, None] * K + channels[None, :], d_query, mask=wide)
    if SLOPED:
        tl.store(d_slopes + part, tl.sum(d_slope, axis=0))
    if GATED:
        tl.store(by_row + queries + position, d_row, mask=real)


@triton.jit
def keys_kernel(
    q, k, v, g, slopes, logsumexp, mean, d_o, d_k, d_v, d_g, by_row, up_to, blocks, count,
    tiles, tokens, keys, heads, group, window,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, TILE: tl.constexpr,
    GATED: tl.constexpr, SLOPED: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """The gradients of the keys and values of one key head in one tile, and of the decays there.

    A decay gets the gradients of exactly the exponents (i, j) with j < t <= i, added up: on the diagonal; of
    later tiles and keys before t in this one; of queries from t on and earlier tiles, by_row; and of later
    and earlier tiles, from the running sums ``up_to`` [heads, count, tiles] of totals over key tiles.
    """
    entry = blocks + 7 * tl.program_id(0)
    first_query = tl.load(entry)
    query_count = tl.load(entry + 1)
    first_key = tl.load(entry + 2)
    key_count = tl.load(entry + 3)
    tile = tl.load(entry + 4)
    first_tile = tl.load(entry + 5)
    first_block = tl.load(entry + 6)
    key_head = tl.program_id(1).to(tl.int64)
    channels = tl.arange(0, BK)
    columns = tl.arange(0, BV)
    row = tl.arange(0, TILE)
    offset = key_count - query_count
    place = tile * TILE + row
    present = place < key_count
    rows_of_keys = key_head * keys + first_key
    key = load_tile(k, rows_of_keys, place, channels, K, present)
    value = load_tile(v, rows_of_keys, place, columns, V, present)
    d_key = tl.zeros_like(key)
    d_value = tl.zeros_like(value)
    low, high = query_tiles(tile, first_tile, key_count, window, TILE, CAUSAL, WINDOWED)
    for member in range(0, group):
        head = key_head * group + member
        queries = head * tokens + first_query - offset
        gates = g + head * keys + first_key
        own = tl.zeros((TILE,), dtype=key.dtype)
        out_of = own
        slope = 0.0
        if GATED:
            of_next = tl.zeros_like(own)
            by_key = tl.zeros_like(own)
            whole = tl.sum(tl.zeros_like(own), axis=0)
            out_of = sums_after(gates, place, key_count, TILE)
            for passed in range(tile + 1, low):
                between = passed * TILE + row
                out_of += tl.sum(tl.load(gates + between, mask=between < key_count, other=0.0), axis=0)
        if SLOPED:
            slope = tl.load(slopes + head % heads)
        for other in range(low, high):
            position = other * TILE + row
            real = (position >= offset) & (position < key_count)
            query = load_tile(q, queries, position, channels, K, real)
            upstream = load_tile(d_o, queries, position, columns, V, real)
            level = tl.load(logsumexp + queries + position, mask=real, other=0.0)
            level = tl.where(level == -float("inf"), 0.0, level)
            center = tl.load(mean + queries + position, mask=real, other=0.0)
            if GATED:
                own = tl.load(gates + position, mask=position < key_count, other=0.0)
            x = exponents(
                query, key, own, out_of, slope, position, place, real, present, other == tile, window,
                GATED, SLOPED, CAUSAL, WINDOWED, P,
            )  # fmt: skip
            weights = tl.exp(x - level[:, None])
            d_value += tl.dot(tl.trans(weights), upstream, input_precision=P)
            d_x = tl.dot(upstream, tl.trans(value), input_precision=P) - center[:, None]
            d_x *= weights
            d_key += tl.dot(tl.trans(d_x), query, input_precision=P)
            if GATED:
                if other == tile:
                    before = tl.cumsum(d_x, axis=1)
                    of_next += tl.sum(tl.where(row[:, None] > row[None, :], before, 0.0), axis=0)
                else:
                    out_of += tl.sum(own, axis=0)
                    by_key += tl.sum(d_x, axis=0)
                    block = (head * count + first_block + other - first_tile) * tiles
                    whole += tl.load(up_to + block + tile - 1, mask=tile > 0, other=0.0)
        if GATED:
            real = (place >= offset) & present
            from_here = tl.load(by_row + queries + place, mask=real, other=0.0)
            of_next += tl.cumsum(by_key, axis=0)
            moved = tl.where(row[:, None] == row[None, :] + 1, of_next[None, :], 0.0)
            of_gate = whole + tl.cumsum(from_here, axis=0, reverse=True) + tl.sum(moved, axis=1)
            tl.store(d_g + head * keys + first_key + place, of_gate, mask=present)
    wide = present[:, None] & (channels[None, :] < K)
    tl.store(d_k + (rows_of_keys + place)[:, None] * K + channels[None, :], d_key, mask=wide)
    wide = present[:, None] & (columns[None, :] < V)
    tl.store(d_v + (rows_of_keys + place)[:, None] * V + columns[None, :], d_value, mask=wide)
