"""Decide whether a rational matrix is one KDA step (I − βkkᵀ)Diag(α), and say why or how.

Write R = βkkᵀ, a symmetric matrix of rank at most 1; then M_ij = −R_ij α_j off the diagonal and
M_jj = (1 − R_jj)α_j. An entry M_ij ≠ 0 makes k_i, k_j and α_j nonzero, hence M_lj ≠ 0 exactly for the l ≠ j
with k_l ≠ 0: every column with an entry off the diagonal shows the support of k. A zero column may always
take α_j = 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

Matrix = Sequence[Sequence[Fraction]]


@dataclass(frozen=True)
class Step:
    """α, β and k = direction/√norm_squared, a unit vector."""

    alpha: tuple[Fraction, ...]
    beta: Fraction
    direction: tuple[Fraction, ...]
    norm_squared: Fraction


@dataclass(frozen=True)
class Quadratic:
    """A step over the reals only: α_j is a nonzero root t of t² + linear·t + constant, all irrational."""

    j: int
    linear: Fraction
    constant: Fraction


@dataclass(frozen=True)
class Impossible:
    """Why there is no step, in entries that can be looked up (rows and columns from 0)."""

    reason: str


def represent(matrix: Matrix) -> Step | Quadratic | Impossible:
    """The step that a square rational matrix is, or why it is none."""
    size = len(matrix)
    slanted = [j for j in range(size) if any(matrix[i][j] for i in range(size) if i != j)]
    if not slanted:
        alpha = tuple(matrix[j][j] for j in range(size))
        return Step(alpha, Fraction(0), (Fraction(1), *[Fraction(0)] * (size - 1)), Fraction(1))
    supports = {j: {j} | {i for i in range(size) if matrix[i][j]} for j in slanted}
    support = supports[slanted[0]]
    for j in slanted:
        if supports[j] != support:
            odd = min(supports[j] ^ support)
            return Impossible(f"columns {slanted[0]} and {j} disagree on whether k[{odd}] is 0")
    columns = [j for j in sorted(support) if any(matrix[i][j] for i in range(size))]
    for j in columns:
        if j not in slanted:
            return Impossible(f"column {j} is nonzero, so α[{j}] is, but its entries off the diagonal vanish")
    return _scaled(matrix, sorted(support), columns)


def _scaled(matrix: Matrix, support: list[int], columns: list[int]) -> Step | Quadratic | Impossible:
    j = columns[0]
    if len(columns) == 1:
        # Any α_j that is neither 0 nor M_jj will do.
        return _checked(matrix, j, max(abs(matrix[j][j]), Fraction(1)) + 1)
    other = columns[1]
    if len(support) > 2:
        third = next(i for i in support if i not in (j, other))
        found = matrix[j][j] - matrix[third][j] * matrix[j][other] / matrix[third][other]
        return _checked(matrix, j, found)
    first = matrix[other][other] * matrix[other][j] / matrix[j][other]
    linear = -(first + matrix[j][j])
    constant = first * matrix[j][j] - matrix[other][j] ** 2
    square = linear**2 - 4 * constant
    root = Fraction(isqrt(square.numerator), isqrt(square.denominator))
    if root**2 != square:
        return Quadratic(j, linear, constant)
    return _checked(matrix, j, next(t for t in ((root - linear) / 2, (-root - linear) / 2) if t))


def _checked(matrix: Matrix, j: int, alpha_j: Fraction) -> Step | Impossible:
    """The step with the given α_j, if it is one: every entry is compared."""
    size = len(matrix)
    if not alpha_j:
        return Impossible(f"α[{j}] would have to be 0, but column {j} is not")
    column = [int(i == j) - matrix[i][j] / alpha_j for i in range(size)]
    if not column[j]:
        return Impossible(f"R[{j}, {j}] would have to be 0, but k[{j}] is not")
    # R = column columnᵀ / column[j], as R has rank 1 and this column.
    alpha = []
    for c in range(size):
        kept = 1 - column[c] ** 2 / column[j]
        mixed = [-column[i] * column[c] / column[j] for i in range(size)]
        mixed[c] = kept
        pivot = next((i for i in range(size) if mixed[i]), None)
        scale = Fraction(0) if pivot is None else matrix[pivot][c] / mixed[pivot]
        for i in range(size):
            if mixed[i] * scale != matrix[i][c]:
                return Impossible(
                    f"α[{j}] = {alpha_j} is forced, and then entry ({i}, {c}) would be {mixed[i] * scale}"
                )
        alpha.append(scale)
    norm_squared = sum((x * x for x in column), Fraction(0))
    return Step(tuple(alpha), norm_squared / column[j], tuple(column), norm_squared)
