"""Whether a rational matrix M lengthens some vector: I − MᵀM reduced to squares, exactly."""

from collections.abc import Sequence
from fractions import Fraction

Matrix = Sequence[Sequence[Fraction]]
Squares = tuple[list[Fraction], list[list[Fraction]]]
BITS = (2, 4, 8, 16, 32, 64, 128)
"""Lengths to which a vector is shortened, in turn, as long as it is still lengthened."""


def stretched(matrix: Matrix) -> list[Fraction] | None:
    """A vector x with ‖Mx‖ > ‖x‖, or ``None`` when M lengthens none; a unit vector where one will do."""
    size = range(len(matrix[0]))
    for j in size:
        if sum((row[j] ** 2 for row in matrix), Fraction(0)) > 1:
            return [Fraction(int(i == j)) for i in size]
    found = reduce(matrix)
    return found if isinstance(found, list) else None


def reduce(matrix: Matrix) -> Squares | list[Fraction]:
    """I − MᵀM = Σ d_i l_i l_iᵀ as (d, l) with d_i >= 0, or a vector x with ‖Mx‖ > ‖x‖."""
    size = range(len(matrix[0]))
    rest = [[int(i == j) - sum((row[i] * row[j] for row in matrix), Fraction(0)) for j in size] for i in size]
    weights: list[Fraction] = []
    rows: list[list[Fraction]] = []
    for c in size:
        pivot = rest[c][c]
        partner = next((j for j in size if j > c and rest[c][j]), None)
        if pivot < 0 or (not pivot and partner is not None):
            x = [Fraction(int(j == c)) for j in size]
            if partner is not None and not pivot:
                x[partner] = Fraction(1)
                x[c] = -(abs(rest[partner][partner]) + 1) / (2 * rest[c][partner])
            return _shortened(matrix, _back(x, c, rows))
        row = [entry / pivot for entry in rest[c]] if pivot else [Fraction(0)] * len(size)
        weights.append(pivot)
        rows.append(row)
        rest = [[rest[i][j] - pivot * row[i] * row[j] for j in size] for i in size]
    return weights, rows


def _back(x: list[Fraction], start: int, rows: list[list[Fraction]]) -> list[Fraction]:
    """The eliminated coordinates that make every earlier square vanish."""
    for c in reversed(range(start)):
        x[c] = -sum((rows[c][j] * x[j] for j in range(c + 1, len(x))), Fraction(0))
    return x


def _shortened(matrix: Matrix, x: list[Fraction]) -> list[Fraction]:
    largest = max(map(abs, x))
    for bits in BITS:
        short = [Fraction(round(entry / largest * 2**bits)) for entry in x]
        if _gain(matrix, short) > 0:
            return short
    return x


def _gain(matrix: Matrix, x: list[Fraction]) -> Fraction:
    """‖Mx‖² − ‖x‖²."""
    image = (sum((a * b for a, b in zip(row, x, strict=True)), Fraction(0)) for row in matrix)
    return sum((y**2 for y in image), Fraction(0)) - sum((y**2 for y in x), Fraction(0))
