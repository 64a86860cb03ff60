"""Singular values of a softmax matrix, enclosed by the inertia of A Aᵀ − tI in interval arithmetic.

Data: ``queries`` n×d and ``keys`` n'×d, ``scale`` s; A_ij = e^{s q_i·k_j}/Σ_l e^{s q_i·k_l}. ``bits`` of the
fixed-point intervals. ``singular_values``: [low, high] for the min(n, n') largest, in decreasing order.
``rank``: [least, most]. ``floors``: for m = 0, 1, … the enclosures ``spectral`` of σ_{m+1} and ``frobenius``
of (Σ_{i>m} σ_i²)^{1/2}. The number of eigenvalues below t is that of negative pivots of G − tI = LDLᵀ
(Sylvester), with G = A Aᵀ or AᵀA, whichever is smaller. The rank is at most the number of rows, and of
columns, of A that are not multiples of an earlier one.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from verify.checkers.inertia import PivotOpen, Table, gram, negative_pivots, softmax
from verify.checkers.reading import Matrix, Wrong, dot, matrix, natural, transpose, vector, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "interval inertia"
KINDS = frozenset({"singular-values"})
MOST_BITS = 2**14
LEAST_BITS = 64


def judge(obligation: Obligation) -> Check:
    """``proved`` when every bound holds, ``undecided`` when a pivot's sign is not certain."""
    try:
        return word(NAME, obligation, _bounds)
    except PivotOpen as gap:
        return Check(NAME, "checker", Verdict.UNDECIDED, str(gap))


def _bounds(data: Mapping[str, Any]) -> str:
    queries, keys, bits = matrix(data["queries"]), matrix(data["keys"]), natural(data["bits"])
    if not LEAST_BITS <= bits <= MOST_BITS:
        raise IllFormed(f"{bits} bits are not between {LEAST_BITS} and {MOST_BITS}")
    scale = rational(data["scale"])
    logits = [[scale * dot(query, key) for key in keys] for query in queries]
    size, possible = min(len(queries), len(keys)), min(_distinct(logits), _distinct(transpose(logits)))
    values = matrix(data["singular_values"])
    if len(values) != size or any(len(row) != 2 or not 0 <= row[0] <= row[1] for row in values):
        raise Wrong(f"the singular values are not {size} intervals of numbers of at least 0")
    _rank(data["rank"], values, possible)
    _floors(data["floors"], values)
    below = _counter(gram(softmax(logits, bits), bits), bits)
    for place, (low, high) in enumerate(values):
        if low and (found := below(low**2)) > size - place - 1:
            raise Wrong(f"{found} of {size} values are below {float(low):.6g}, so number {place + 1} is")
        if high and (found := below(high**2)) < size - place:
            raise Wrong(f"only {found} of {size} are below {float(high):.6g}, and number {place + 1} is not")
        if not high and place < possible:
            raise Wrong(f"nothing shows that value {place + 1} is 0")
    known = [(low, high) for low, high in values if low]
    digits = min((_digits(low, high) for low, high in known), default=0)
    return f"{len(known)} of {size} singular values are above 0, known to at least {digits} digits"


def _rank(stated: Any, values: Matrix, possible: int) -> None:
    least, most = (natural(item) for item in stated)
    if least > sum(low > 0 for low, _ in values):
        raise Wrong(f"the bounds do not show {least} singular values above 0")
    if most < min(possible, len(values)):
        raise Wrong(f"nothing shows that the rank is at most {most}; {possible} rows or columns may count")


def _floors(stated: Any, values: Matrix) -> None:
    for floor in stated:
        m = natural(floor["features"])
        (low, high), (least, most) = (vector(floor[name]) for name in ("spectral", "frobenius"))
        if m >= len(values):
            raise Wrong(f"there is no singular value after {m}")
        if not (low <= values[m][0] and values[m][1] <= high):
            raise Wrong(f"the spectral error of {m} features is in {values[m]}")
        if least < 0 or least**2 > sum(x**2 for x, _ in values[m:]):
            raise Wrong(f"the Frobenius error of {m} features need not reach {float(least):.6g}")
        if most < 0 or most**2 < sum(x**2 for _, x in values[m:]):
            raise Wrong(f"the Frobenius error of {m} features may exceed {float(most):.6g}")


def _distinct(logits: Matrix) -> int:
    """Rows that differ by more than a constant: the others' exponentials are multiples of one another."""
    return len({tuple(x - row[0] for x in row) for row in logits})


def _counter(product: Table, bits: int) -> Callable[[Fraction], int]:
    """How many eigenvalues are below a number, for the lower triangle of G."""

    @cache
    def below(t: Fraction) -> int:
        low = (t.numerator << bits) // t.denominator
        work = [list(row) for row in product]
        for place, row in enumerate(work):
            row[place] = (row[place][0] - low - 1, row[place][1] - low)
        return negative_pivots(work, bits)

    return below


def _digits(low: Fraction, high: Fraction) -> int:
    """Decimal digits to which an interval of positive numbers fixes its numbers."""
    if low == high:
        return MOST_BITS
    ratio = low / (high - low)
    return max(0, len(str(ratio.numerator // ratio.denominator)) - 1)
