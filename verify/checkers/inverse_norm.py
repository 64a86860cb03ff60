"""An upper bound on the inverse of a block of a softmax matrix, by interval elimination.

Data: ``queries`` and ``keys``, lists of rationals; ``rows`` and ``columns``, as many indices (from 0) of a
square block of P_ij = e^{q_i k_j}/Σ_l e^{q_i k_l}; ``below``, a rational that ‖block⁻¹‖_F² must stay under.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import Interval, decimal, exp
from verify.checkers.reading import Wrong, natural, vector, word
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "interval inverse"
KINDS = frozenset({"inverse-norm"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the block is certainly invertible and its inverse certainly small enough."""
    return word(NAME, obligation, _bounded)


def _bounded(data: Mapping[str, Any]) -> str:
    queries, keys, limit = vector(data["queries"]), vector(data["keys"]), rational(data["below"])
    rows, columns = ([natural(item) for item in data[name]] for name in ("rows", "columns"))
    if (
        len(rows) != len(columns)
        or not rows
        or len(set(rows)) < len(rows)
        or len(set(columns)) < len(columns)
    ):
        raise Wrong("the rows and columns do not name a square block")
    block = [[_weight(queries[i], keys, j) for j in columns] for i in rows]
    total = Interval.point(0)
    for row in _inverse(block):
        for entry in row:
            size = max(abs(entry.low), abs(entry.high))
            total = total + Interval.point(size) * Interval.point(size)
    if total.high >= limit:
        raise Wrong(f"the squared norm of the inverse is only certainly below {decimal(total.high)}")
    return f"{len(rows)}×{len(rows)} block, squared norm of its inverse at most {decimal(total.high)}"


def _weight(query: Fraction, keys: list[Fraction], j: int) -> Interval:
    """e^{qk_j}/Σ_l e^{qk_l}."""
    total = Interval.point(0)
    for key in keys:
        total = total + exp(query * (key - keys[j]))
    return Interval.point(1) / total


def _inverse(block: list[list[Interval]]) -> list[list[Interval]]:
    """Gauss–Jordan on the block beside the identity."""
    size = len(block)
    work = [[*row, *(Interval.point(int(i == j)) for j in range(size))] for i, row in enumerate(block)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: work[i][column].magnitude)
        if not work[pivot][column].excludes_zero:
            raise Wrong(f"no entry left in column {column + 1} certainly differs from 0")
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [entry / work[column][column] for entry in work[column]]
        for i in range(size):
            if i != column:
                factor = work[i][column]
                pairs = zip(work[i], work[column], strict=True)
                work[i] = [entry - factor * above for entry, above in pairs]
    return [row[size:] for row in work]
