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
def store_rows(x, rows, head, step, first, end, columns, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """The inverse: ``rows`` into their places in x, but for those from token ``end`` on."""
    token = first + tl.arange(0, ROWS)
    places = x + (head + token[:, None] * step) * COLUMNS + columns[None, :]
    tl.store(places, rows, mask=(token[:, None] < end) & (columns[None, :] < COLUMNS))


@triton.jit
def block_sums(x, WIDE: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, BACK: tl.constexpr):
    """[ROWS, WIDE]: for each row of x the sum in its block of WIDTH rows up to it, or ``BACK`` from it on."""
    if WIDTH == ROWS:
        return tl.cumsum(x, axis=0, reverse=BACK)
    sums = tl.cumsum(tl.reshape(x, (ROWS // WIDTH, WIDTH, WIDE)), axis=1, reverse=BACK)
    return tl.reshape(sums, (ROWS, WIDE))


@triton.jit
def sums_into(
    g,
    head,
    step,
    first,
    end,
    columns,
    GATES: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """[ROWS, WIDE]: for each row the sum of the log decays g from the start of its block of WIDTH rows to it.

    ``columns`` are WIDE of the GATES columns of g. Sums of gates only, so at most 0 and right for a gate of
    -inf.
    """
    return block_sums(load_rows(g, head, step, first, end, columns, GATES, ROWS), WIDE, ROWS, WIDTH, False)


@triton.jit
def sums_out_of(
    g,
    head,
    step,
    first,
    end,
    columns,
    GATES: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """[ROWS, WIDE]: for each row the sum of the log decays after it in its block of WIDTH rows."""
    last = (tl.arange(0, ROWS) % WIDTH == WIDTH - 1)[:, None]
    gates = load_rows(g, head, step, first + 1, end, columns, GATES, ROWS)
    return block_sums(tl.where(last, 0.0, gates), WIDE, ROWS, WIDTH, True)
