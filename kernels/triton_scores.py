"""Triton kernels of what is parallel over chunks: the scores, and the inverse of the triangular system."""

from kernels.triton_decay import load_rows, sums_into, sums_out_of
from kernels.triton_runtime import LAUNCH, tl, triton

SCORES_LAUNCH = LAUNCH | {"num_warps": 4}
"""Tiles of 16 rows do not fill more warps."""


@triton.jit
def _crossing(
    q, k, g, head, step, first, end, GATES: tl.constexpr, WIDE: tl.constexpr, W: tl.constexpr, P: tl.constexpr
):
    """Scores [16, 16] of q with k and k with k where a row in the second half of a block of 2 W rows meets a
    column in its first half, else 0. The decay is split at the border between them."""
    row = tl.arange(0, 16)[:, None]
    column = tl.arange(0, 16)[None, :]
    meets = (row // (2 * W) == column // (2 * W)) & (row % (2 * W) >= W) & (column % (2 * W) < W)
    columns = tl.arange(0, WIDE)
    into = tl.exp(sums_into(g, head, step, first, end, columns, GATES, WIDE, 16, W))
    earlier = tl.trans(k * tl.exp(sums_out_of(g, head, step, first, end, columns, GATES, WIDE, 16, W)))
    qk = tl.dot(q * into, earlier, input_precision=P)
    kk = tl.dot(k * into, earlier, input_precision=P)
    return tl.where(meets, qk, 0.0), tl.where(meets, kk, 0.0)


@triton.jit
def scores_kernel(
    q, k, g, qk_out, kk_out, spans, count, tokens, heads,
    K: tl.constexpr, BK: tl.constexpr, GATES: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
    P: tl.constexpr,
):  # fmt: skip
    """Sixteen rows i of Scores(x, K) of one chunk, x = Q and x = K, into [B, HV, chunks, ROWS, ROWS].

    x_i . k_j e^(g_{j+1} + ... + g_i), for j <= i, and with x = K for j < i; other places and rows past the
    end are not for reading. Sixteen earlier columns at a time, the decay is split at the start of the rows:
    from there to i, and from j to there, two sums of gates (claim kda.chunk-range). Inside the square on the
    diagonal it is split at the borders of pairs of blocks of 1, 2, 4 and 8 rows. GATES is K, 1, or 0 for no
    decay.
    """
    blocks: tl.constexpr = ROWS // 16
    block = tl.program_id(0) % blocks
    chunk = tl.program_id(0) // blocks
    head = tl.program_id(1).to(tl.int64)
    base = head // heads * tokens * heads + head % heads
    start = tl.load(spans + 2 * chunk)
    end = tl.load(spans + 2 * chunk + 1)
    first = start + block * 16
    if first >= end:
        return
    row = tl.arange(0, 16)
    channels = tl.arange(0, BK)
    q_rows = load_rows(q, base, heads, first, end, channels, K, 16)
    k_rows = load_rows(k, base, heads, first, end, channels, K, 16)
    later_q = q_rows
    later_k = k_rows
    if GATES > 0:
        columns = tl.arange(0, WIDE)
        into = tl.exp(sums_into(g, base, heads, first, end, columns, GATES, WIDE, 16, 16))
        later_q = q_rows * into
        later_k = k_rows * into
        between = tl.zeros((1, WIDE), dtype=q_rows.dtype)
    square = ((head * count + chunk) * ROWS + block * 16 + row[:, None]) * ROWS + row[None, :]
    for step in range(0, block):
        column = (block - 1 - step) * 16
        earlier = load_rows(k, base, heads, start + column, end, channels, K, 16)
        if GATES > 0:
            out_of = sums_out_of(g, base, heads, start + column, end, columns, GATES, WIDE, 16, 16)
            earlier = earlier * tl.exp(between + out_of)
            gates = load_rows(g, base, heads, start + column, end, columns, GATES, 16)
            between += tl.sum(gates, axis=0)[None, :]
        earlier = tl.trans(earlier)
        tl.store(qk_out + square + column, tl.dot(later_q, earlier, input_precision=P))
        tl.store(kk_out + square + column, tl.dot(later_k, earlier, input_precision=P))
    if GATES > 0:
        qk = tl.where(row[:, None] == row[None, :], tl.sum(q_rows * k_rows, axis=1)[:, None], 0.0)
        qk_1, kk_1 = _crossing(q_rows, k_rows, g, base, heads, first, end, GATES, WIDE, 1, P)
        qk_2, kk_2 = _crossing(q_rows, k_rows, g, base, heads, first, end, GATES, WIDE, 2, P)
        qk_4, kk_4 = _crossing(q_rows, k_rows, g, base, heads, first, end, GATES, WIDE, 4, P)
        qk_8, kk_8 = _crossing(q_rows, k_rows, g, base, heads, first, end, GATES, WIDE, 8, P)
        qk += qk_1 + qk_2 + qk_4 + qk_8
        kk = kk_1 + kk_2 + kk_4 + kk_8
    else:
        earlier = tl.trans(k_rows)
        qk = tl.dot(q_rows, earlier, input_precision=P)
        kk = tl.dot(k_rows, earlier, input_precision=P)
    tl.store(qk_out + square + block * 16, qk)
    tl.store(kk_out + square + block * 16, kk)


@triton.jit
def inverse_kernel(kk, beta, out, spans, count, tokens, heads, ROWS: tl.constexpr, P: tl.constexpr):
    """The inverse of I + StrictTril(kk Diag(beta)) of one chunk, into [B, HV, chunks, ROWS, ROWS].

    Squares of 16 rows on the diagonal by forward substitution, all at once; then inverted blocks X, Y with A
    between them are merged into [[X, 0], [-Y A X, Y]]. Only blocks of the result are formed, whose entries
    stay small (claim chunk.inverse-bounded), no powers (kda.neumann-exact-unstable).
    """
    blocks: tl.constexpr = ROWS // 16
    chunk = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    base = head // heads * tokens * heads + head % heads
    start = tl.load(spans + 2 * chunk)
    end = tl.load(spans + 2 * chunk + 1)
    matrix = (head * count + chunk) * ROWS * ROWS
    block = tl.arange(0, blocks)[:, None, None]
    row = tl.arange(0, 16)[None, :, None]
    column = tl.arange(0, 16)[None, None, :]
    place = (block * 16 + row) * ROWS + block * 16 + column
    token = start + block * 16
    strength = tl.load(beta + base + (token + column) * heads, mask=token + column < end, other=0.0)
    below = (row > column) & (token + row < end)
    square = tl.load(kk + matrix + place, mask=below, other=0.0) * strength
    solved = tl.where((row == column) & (block >= 0), 1.0, 0.0).to(square.dtype)
    for i in range(1, 16):
        factors = tl.sum(tl.where(row == i, square, 0.0), axis=1)
        known = tl.sum(factors[:, :, None] * solved, axis=1)[:, None, :]
        solved = tl.where(row == i, solved - known, solved)
    rows = tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, ROWS)[None, :]
    on_diagonal = (block == tl.reshape(tl.arange(0, blocks), (1, 1, blocks)))[:, :, :, None]
    spread = tl.where(on_diagonal, solved[:, :, None, :], 0.0)
    inverse = tl.reshape(spread, (ROWS, ROWS))
    token = start + columns
    strength = tl.load(beta + base + token * heads, mask=token < end, other=0.0)
    below = (rows > columns) & (start + rows < end)
    lower = tl.load(kk + matrix + rows * ROWS + columns, mask=below, other=0.0) * strength
    if ROWS > 16:
        meets = (rows // 32 == columns // 32) & (rows // 16 > columns // 16)
        between = tl.dot(tl.where(meets, lower, 0.0), inverse, input_precision=P)
        inverse -= tl.dot(inverse, between, input_precision=P)
    if ROWS > 32:
        meets = rows // 32 > columns // 32
        between = tl.dot(tl.where(meets, lower, 0.0), inverse, input_precision=P)
        inverse -= tl.dot(inverse, between, input_precision=P)
    tl.store(out + matrix + rows * ROWS + columns, inverse)
