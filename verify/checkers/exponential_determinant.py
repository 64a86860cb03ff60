"""The determinant of (e^{q_i k_j}) for rational q and k: an interval that excludes 0, by elimination.

Data: ``queries`` and ``keys``, two lists of n rationals each; ``sign``, 1 or −1.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import Interval, exp
from verify.checkers.reading import Wrong, vector, word
from verify.model.evidence import Check, Obligation

NAME = "interval elimination"
KINDS = frozenset({"exponential-determinant"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the determinant certainly has the stated sign."""
    return word(NAME, obligation, _determinant)


def _determinant(data: Mapping[str, Any]) -> str:
    queries, keys = vector(data["queries"]), vector(data["keys"])
    if len(queries) != len(keys):
        raise Wrong(f"{len(queries)} queries and {len(keys)} keys give no square matrix")
    found = enclose(queries, keys)
    if data["sign"] not in (1, -1) or not found.excludes_zero or (found.low > 0) != (data["sign"] > 0):
        raise Wrong(f"the determinant is in {found}")
    return f"{len(keys)}×{len(keys)}, determinant in {found}"


def enclose(queries: Sequence[Fraction], keys: Sequence[Fraction]) -> Interval:
    """An enclosure of det (e^{q_i k_j}); contains 0 when no pivot is certainly nonzero."""
    rows = [[exp(query * key) for key in keys] for query in queries]
    determinant = Interval.point(1)
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda i: rows[i][column].magnitude)
        if not rows[pivot][column].excludes_zero:
            raise Wrong(f"no entry left in column {column + 1} certainly differs from 0")
        if pivot != column:
            rows[column], rows[pivot] = rows[pivot], rows[column]
            determinant = Interval.point(-1) * determinant
        top = rows[column]
        determinant = determinant * top[column]
        for row in rows[column + 1 :]:
            factor = row[column] / top[column]
            pairs = zip(row[column:], top[column:], strict=True)
            row[column:] = [entry - factor * above for entry, above in pairs]
    return determinant
