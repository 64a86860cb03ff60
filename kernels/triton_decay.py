"""Device functions of the chunked Triton kernels: rows of a chunk and their decays."""

from kernels.triton_runtime import tl, triton


@triton.jit
def load_rows(x, head, step, first, end, columns, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """[ROWS, columns] of x [B, T, HV, COLUMNS]: tokens first, first + 1, ...; 0 from token ``end`` on.

    ``head`` is the number of the row of the first token of a batch and head among all rows, int64; ``step``
    the rows from one token to the next; ``columns`` the column numbers.
    """
    token = first + tl.arange(0, ROWS)
    places = x + (head + token[:, None] * step) * COLUMNS + columns[None, :]
    return tl.load(places, mask=(token[:, None] < end) & (columns[None, :] < COLUMNS), other=0.0)


@triton.jit
def sums_into(
    g,
    head,
    step,
    first,
    end,
    GATES: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """[ROWS, WIDE]: for each row the sum of the log decays g from the start of its block of WIDTH rows to it.

    Sums of gates only, so at most 0 and right for a gate of -inf.
    """
    gates = load_rows(g, head, step, first, end, tl.arange(0, WIDE), GATES, ROWS)
    if WIDTH == ROWS:
        return tl.cumsum(gates, axis=0)
    gates = tl.cumsum(tl.reshape(gates, (ROWS // WIDTH, WIDTH, WIDE)), axis=1)
    return tl.reshape(gates, (ROWS, WIDE))


@triton.jit
def sums_out_of(
    g,
    head,
    step,
    first,
    end,
    GATES: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """[ROWS, WIDE]: for each row the sum of the log decays after it in its block of WIDTH rows."""
    last = (tl.arange(0, ROWS) % WIDTH == WIDTH - 1)[:, None]
    gates = load_rows(g, head, step, first + 1, end, tl.arange(0, WIDE), GATES, ROWS)
    gates = tl.where(last, 0.0, gates)
    if WIDTH == ROWS:
        return tl.cumsum(gates, axis=0, reverse=True)
    gates = tl.cumsum(tl.reshape(gates, (ROWS // WIDTH, WIDTH, WIDE)), axis=1, reverse=True)
    return tl.reshape(gates, (ROWS, WIDE))
