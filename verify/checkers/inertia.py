"""Inertia of A Aᵀ − tI for a softmax matrix A, in intervals whose ends are integers over a power of two.

Unlike those of ``dyadic`` they have any number of bits, as small singular values need.
"""

from fractions import Fraction

from verify.checkers.reading import Matrix

GUARD = 64
"""Further bits inside the exponential, far more than its rounding errors use up."""

Ends = tuple[int, int]
Table = list[list[Ends]]


class PivotOpen(Exception):
    """A pivot may be 0 at this precision."""


def softmax(logits: Matrix, bits: int) -> Table:
    """Every row's exponentials over their sum, in units of 2^−bits."""
    rows = []
    for row in logits:
        weights = [exp(logit - max(row), bits) for logit in row]
        low, high = (sum(ends) for ends in zip(*weights, strict=True))
        rows.append([((x << bits) // high, -((-y << bits) // low)) for x, y in weights])
    return rows


def exp(x: Fraction, bits: int) -> Ends:
    """e^x for x <= 0, by e^x = (e^{x/2^k})^{2^k} and the Taylor series, in units of 2^−bits."""
    if -x > bits:
        return 0, 1
    work = bits + GUARD
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 8)
    small = (x.numerator << work) // (x.denominator << halvings)
    # |small| <= 2⁻⁷: each term is off by less than 3 units, fewer terms than bits, the rest is below 1.
    total, term, count = 0, 1 << work, 0
    while term not in (0, -1):
        total += term
        count += 1
        term = (term * small >> work) // count
    low, high = total - 4 * work, total + 4 * work
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    return max(0, low >> GUARD), -(-high >> GUARD)


def gram(rows: Table, bits: int) -> Table:
    """A Aᵀ or AᵀA for the entries of A, none of which is negative."""
    if len(rows) > len(rows[0]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    return [
        [
            (
                sum(x * y for (x, _), (y, _) in zip(row, other, strict=True)) >> bits,
                -(-sum(x * y for (_, x), (_, y) in zip(row, other, strict=True)) >> bits),
            )
            for other in rows[: place + 1]
        ]
        for place, row in enumerate(rows)
    ]


def negative_pivots(work: Table, bits: int) -> int:
    """How many eigenvalues are negative, for the lower triangle of a matrix, which is used up.

    The matrix is LDLᵀ with as many negative pivots D (Sylvester's law of inertia).

    Raises:
        PivotOpen: the sign of a pivot is not certain.
    """
    negative = 0
    for k, top in enumerate(work):
        low, high = top[k]
        if low <= 0 <= high:
            raise PivotOpen(f"pivot {k + 1} may be 0 at {bits} bits")
        negative += high < 0
        column = [row[k] for row in work[k + 1 :]]
        for i, row in enumerate(work[k + 1 :]):
            factor = _quotient(column[i], (low, high), bits)
            for j in range(i + 1):
                least, most = _product(factor, column[j])
                x, y = row[k + 1 + j]
                row[k + 1 + j] = (x + (-most >> bits), y - (least >> bits))
    return negative


def _quotient(x: Ends, y: Ends, bits: int) -> Ends:
    if y[1] < 0:
        x, y = (-x[1], -x[0]), (-y[1], -y[0])
    low = (x[0] << bits) // (y[1] if x[0] >= 0 else y[0])
    return low, -((-x[1] << bits) // (y[0] if x[1] >= 0 else y[1]))


def _product(x: Ends, y: Ends) -> Ends:
    (a, b), (c, d) = x, y
    if a >= 0 and c >= 0:
        return a * c, b * d
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)
