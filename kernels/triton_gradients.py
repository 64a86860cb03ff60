"""The Triton kernel that turns gradients of scores and decayed rows into those of queries, keys and gates."""

from kernels.triton_decay import block_sums, load_rows, store_rows, sums_into, sums_out_of
from kernels.triton_runtime import tl, triton

CHANNELS = 16
"""Key channels per program: no gradient of a channel needs another channel."""


@triton.jit
def _over_channels(x, WIDE: tl.constexpr):
    """The gradient of a log decay, or of the one that all channels have."""
    if WIDE == 1:
        x = tl.sum(x, axis=1)[:, None]
    return x


@triton.jit
def _next_row(x, WIDE: tl.constexpr, ROWS: tl.constexpr):
    """[ROWS, WIDE], each row moved to the next, exactly: sums of one term that is not 0."""
    moves = tl.arange(0, ROWS)[:, None] == tl.arange(0, ROWS)[None, :] + 1
    if WIDE == 1:
        x = tl.sum(tl.where(moves, tl.trans(x), 0.0), axis=1)[:, None]
    else:
        x = tl.dot(moves.to(x.dtype), x, input_precision="ieee")
    return x


@triton.jit
def _level(
    query, key, into, out_of, d_qk, d_kk, square,
    W: tl.constexpr, ROWS: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Gradients of query, key, their sums into and the keys' sums out of blocks of W rows, from those of the
    scores where a row in the second half of a block of 2 W rows meets a column in its first half.

    The decay is split at the border between them, as the scores were. Squares of at least 16 rows.
    """
    SIDE: tl.constexpr = 2 * W if W > 8 else 16
    block = tl.arange(0, ROWS // SIDE)[:, None, None] * SIDE
    row = tl.arange(0, SIDE)[None, :, None]
    column = tl.arange(0, SIDE)[None, None, :]
    meets = (row // (2 * W) == column // (2 * W)) & (row % (2 * W) >= W) & (column % (2 * W) < W)
    place = square + (block + row) * ROWS + block + column
    meets = meets & (block >= 0)
    of_qk = tl.load(d_qk + place, mask=meets, other=0.0)
    of_kk = tl.load(d_kk + place, mask=meets, other=0.0)
    later_q = query * into
    later_k = key * into
    earlier = key * out_of
    shape: tl.constexpr = (ROWS // SIDE, SIDE, BK)
    wide = tl.reshape(earlier, shape)
    d_later_q = tl.reshape(tl.dot(of_qk, wide, input_precision=P), (ROWS, BK))
    d_later_k = tl.reshape(tl.dot(of_kk, wide, input_precision=P), (ROWS, BK))
    d_earlier = tl.dot(tl.permute(of_qk, (0, 2, 1)), tl.reshape(later_q, shape), input_precision=P)
    d_earlier += tl.dot(tl.permute(of_kk, (0, 2, 1)), tl.reshape(later_k, shape), input_precision=P)
    d_earlier = tl.reshape(d_earlier, (ROWS, BK))
    d_into = _over_channels(later_q * d_later_q + later_k * d_later_k, WIDE)
    d_out_of = _over_channels(earlier * d_earlier, WIDE)
    return into * d_later_q, into * d_later_k + out_of * d_earlier, d_into, d_out_of


@triton.jit
def gradients_kernel(
    q, k, g, beta, states, errors, d_o, d_right, d_states, d_qk, d_kk, d_q, d_k, d_g, spans,
    count, tokens, heads,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, GATES: tl.constexpr,
    WIDE: tl.constexpr, SHARES: tl.constexpr, LEVELS: tl.constexpr, ROWS: tl.constexpr,
    SAVED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Some channels of the gradients of q, k and g of one chunk and head.

    What was read from the state S before the chunk gives dO S^T and -Y S^T, what was written to the one
    after it W dS^T, the scores the rest. A gate gets the gradients of exactly the exponents that contain it,
    added up: those of rows i at or after it, and those of rows j before it.
    """
    chunk = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    base = head // heads * tokens * heads + head % heads
    start = tl.load(spans + 2 * chunk)
    end = tl.load(spans + 2 * chunk + 1)
    row = tl.arange(0, ROWS)
    token = start + row
    channels = tl.program_id(2) * BK + tl.arange(0, BK)
    query = load_rows(q, base, heads, start, end, channels, K, ROWS)
    key = load_rows(k, base, heads, start, end, channels, K, ROWS)
    strength = tl.load(beta + base + token * heads, mask=token < end, other=0.0)
    d_query = tl.zeros_like(query)
    d_later = tl.zeros_like(query)
    d_earlier = tl.zeros_like(query)
    d_total = tl.zeros((BK,), dtype=query.dtype)
    for first in range(0, V, BV):
        columns = first + tl.arange(0, BV)
        place = (head * count + chunk) * K * V + channels[:, None] * V + columns[None, :]
        inside = (channels[:, None] < K) & (columns[None, :] < V)
        before = tl.load(states + place, mask=inside, other=0.0)
        after = tl.load(d_states + place, mask=inside, other=0.0)
        d_total += tl.sum(before * after, axis=1)
        before = tl.trans(before)
        upstream = load_rows(d_o, base, heads, start, end, columns, V, ROWS)
        d_query += tl.dot(upstream, before, input_precision=P)
        right = load_rows(d_right, base, heads, start, end, columns, V, ROWS)
        d_later -= tl.dot(right, before, input_precision=P)
        kept = errors + ((head * count + chunk) * SAVED + row[:, None]) * V + columns[None, :]
        error = tl.load(kept, mask=(row[:, None] < SAVED) & (columns[None, :] < V), other=0.0)
        d_earlier += tl.dot(strength[:, None] * error, tl.trans(after), input_precision=P)
    square = (head * count + chunk) * ROWS * ROWS
    matrix = row[:, None] * ROWS + row[None, :]
    of_qk = tl.load(d_qk + square + matrix)
    if GATES == 0:
        of_kk = tl.load(d_kk + square + matrix)
        d_key = d_later + d_earlier
        d_query += tl.dot(of_qk, key, input_precision=P)
        d_key += tl.dot(tl.trans(of_qk), query, input_precision=P)
        d_key += tl.dot(of_kk + tl.trans(of_kk), key, input_precision=P)
    else:
        gate = tl.program_id(2) * WIDE + tl.arange(0, WIDE) if WIDE > 1 else tl.arange(0, WIDE)
        into = tl.exp(sums_into(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
        out_of = tl.exp(sums_out_of(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
        total = tl.exp(tl.sum(load_rows(g, base, heads, start, end, gate, GATES, ROWS), axis=0))
        d_query *= into
        d_later *= into
        d_earlier *= out_of
        d_into = _over_channels(query * d_query + key * d_later, WIDE)
        # The sums into rows i that contain a row's gate, and those out of j that contain the next row's.
        of_gate = block_sums(d_into, WIDE, ROWS, ROWS, True)
        of_gate += _over_channels((total * d_total)[None, :], WIDE)
        of_next = block_sums(_over_channels(key * d_earlier, WIDE), WIDE, ROWS, ROWS, False)
        diagonal = tl.sum(tl.where(row[:, None] == row[None, :], of_qk, 0.0), axis=1)[:, None]
        d_query += diagonal * key
        d_key = d_later + d_earlier + diagonal * query
        for level in tl.static_range(LEVELS):
            into = tl.exp(sums_into(g, base, heads, start, end, gate, GATES, WIDE, ROWS, 1 << level))
            out_of = tl.exp(sums_out_of(g, base, heads, start, end, gate, GATES, WIDE, ROWS, 1 << level))
            own_query, own_key, d_into, d_out_of = _level(
                query, key, into, out_of, d_qk, d_kk, square, 1 << level, ROWS, BK, WIDE, P
            )
            d_query += own_query
            d_key += own_key
            of_gate += block_sums(d_into, WIDE, ROWS, 1 << level, True)
            last = (row % (1 << level) == (1 << level) - 1)[:, None]
            of_next += tl.where(last, 0.0, block_sums(d_out_of, WIDE, ROWS, 1 << level, False))
        of_gate += _next_row(of_next, WIDE, ROWS)
        share = tl.program_id(2) + tl.arange(0, 1) if WIDE == 1 else gate
        store_rows(d_g, of_gate, base, heads, start, end, share, SHARES, ROWS)
    store_rows(d_q, d_query, base, heads, start, end, channels, K, ROWS)
    store_rows(d_k, d_key, base, heads, start, end, channels, K, ROWS)
