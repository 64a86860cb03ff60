"""Decide whether a rational matrix is one KDA step (I − R)Diag(α), R = βkkᵀ, and say how or why not.

Off the diagonal M_ij = −R_ijα_j, on it M_jj = (1 − R_jj)α_j. An entry M_ij ≠ 0 makes k_i, k_j and α_j
nonzero, hence M_lj ≠ 0 exactly for the l ≠ j with k_l ≠ 0. Where three channels mix, R_ijR_jl = R_ilR_jj
forces α_j = M_jj − M_ijM_jl/M_il; where two do, α_j is a root of a quadratic; where one column of them alone
is not 0, α_j is free. The bounds ask for α in [0, 1] and R ⪰ 0 of trace β at most 2, which is ‖Me_j‖ ≤ α_j.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import isqrt
from typing import Any, NamedTuple

from derivations.kda._stretch import stretched

Matrix = Sequence[Sequence[Fraction]]
Triple = tuple[int, int, int]
READABLE = 200
"""Bits of a number that a sentence writes out."""


class Surd(NamedTuple):
    """p + q√D, D being the radicand of the step."""

    p: Fraction
    q: Fraction = Fraction(0)


@dataclass(frozen=True)
class Step:
    """α, and R = βkkᵀ in place of β and k: with ‖k‖ = 1 its trace is β, and k is along its columns."""

    alpha: tuple[Surd, ...]
    erase: tuple[tuple[Surd, ...], ...]
    radicand: Fraction = Fraction(0)


@dataclass(frozen=True)
class Impossible:
    """Why there is no step: a rule with the places it compares (from 0), and a sentence (channels from 1)."""

    rule: str
    at: dict[str, Any]
    reason: str


def represent(matrix: Matrix, bounded: bool = False) -> Step | Impossible:
    """The step that a square rational matrix is, or why it is none.

    Args:
        matrix: d×d.
        bounded: demand α in [0, 1]^d, ‖k‖ = 1 and β in [0, 2]; otherwise any real α, β, k will do.
    """
    if bounded and (vector := stretched(matrix)):
        return Impossible(
            "stretch", {"vector": vector}, "it lengthens a vector, and no step within bounds does"
        )
    shown = dict(_shown_channels(matrix, bounded))
    support = sorted(shown)
    columns = [j for j in support if any(row[j] for row in matrix)]
    for q in columns:
        for p in support:
            if p != q and not matrix[p][q]:
                return _zero_entry(matrix, p, q, shown)
    if len(support) < 2:
        return _diagonal(matrix, support)
    if len(columns) == 1:
        j = columns[0]
        free = Fraction(1) if bounded else max(abs(matrix[j][j]), Fraction(1)) + 1
        return _from_column(matrix, j, free, {j: free})
    if len(support) == 2:
        return _two_channels(matrix, support[0], support[1], bounded)
    return _three_channels(matrix, support, columns, bounded)


def _shown_channels(matrix: Matrix, bounded: bool) -> Iterator[tuple[int, list[int]]]:
    """Channels where k is not 0, each with a place that shows it."""
    for i, row in enumerate(matrix):
        for j, entry in enumerate(row):
            if i != j and entry:
                yield i, [i, j]
                yield j, [i, j]
            elif i == j and bounded and entry < 0:
                yield i, [i, i]


def _zero_entry(matrix: Matrix, p: int, q: int, shown: dict[int, list[int]]) -> Impossible:
    r = next(i for i, row in enumerate(matrix) if row[q])
    at = {"entry": [p, q], "row_key": shown[p], "column_key": shown[q], "nonzero": r}
    reason = (
        f"k is not 0 in channel {p + 1} ({_entry(matrix, *shown[p])}) nor in channel {q + 1}"
        f" ({_entry(matrix, *shown[q])}), so {_entry(matrix, p, q)} means α_{q + 1} = 0;"
        f" but {_entry(matrix, r, q)}"
    )
    return Impossible("zero-entry", at, reason)


def _diagonal(matrix: Matrix, support: list[int]) -> Step:
    """A gate, with a reflection along the one axis whose entry is negative, if the bounds ask for it."""
    size = range(len(matrix))
    alpha = tuple(Surd(abs(matrix[j][j]) if j in support else matrix[j][j]) for j in size)
    erase = tuple(tuple(Surd(Fraction(2 * (i == j and i in support))) for j in size) for i in size)
    return Step(alpha, erase)


def _from_column(matrix: Matrix, j: int, decay: Fraction, known: dict[int, Fraction]) -> Step:
    """The step whose decay α_j is given, R from column j; ``known`` has the decays of the support."""
    size = range(len(matrix))
    column = [int(i == j) - matrix[i][j] / decay for i in size]
    erase = tuple(tuple(Surd(column[i] * column[c] / column[j]) for c in size) for i in size)
    alpha = tuple(Surd(known[c] if c in known else Fraction(0) if column[c] else matrix[c][c]) for c in size)
    return Step(alpha, erase)


def _three_channels(
    matrix: Matrix, support: list[int], columns: list[int], bounded: bool
) -> Step | Impossible:
    triples = {j: next(_triples(matrix, support, j)) for j in columns}
    known = {j: _forced(matrix, triple) for j, triple in triples.items()}
    for j, triple in triples.items():
        if not known[j]:
            r = next(i for i, row in enumerate(matrix) if row[j])
            reason = f"{_says(matrix, triple)}, but {_entry(matrix, r, j)}"
            return Impossible("dead-decay", {"triple": list(triple), "nonzero": r}, reason)
    step = _from_column(matrix, columns[0], known[columns[0]], known)
    if not _is(step, matrix):
        return _contradiction(matrix, support, triples)
    for j, triple in triples.items() if bounded else ():
        if found := _out_of_bounds(matrix, triple, known[j]):
            return found
    return step


def _triples(matrix: Matrix, support: list[int], j: int) -> Iterator[Triple]:
    """All (i, j, l) with M_il ≠ 0."""
    others = [c for c in support if c != j]
    return ((i, j, last) for i, last in permutations(others, 2) if matrix[i][last])


def _forced(matrix: Matrix, triple: Triple) -> Fraction:
    i, j, l = triple  # noqa: E741
    return matrix[j][j] - matrix[i][j] * matrix[j][l] / matrix[i][l]


def _is(step: Step, matrix: Matrix) -> bool:
    """Whether a rational step is the matrix."""
    size = range(len(matrix))
    return all(
        (int(i == j) - step.erase[i][j].p) * step.alpha[j].p == matrix[i][j] for i in size for j in size
    )


def _contradiction(matrix: Matrix, support: list[int], triples: dict[int, Triple]) -> Impossible:
    """Two ways to a decay that disagree, or mirrored entries that do: one of them must exist."""
    for j in support:
        first, *others = _triples(matrix, support, j)
        for other in others:
            if _forced(matrix, other) != _forced(matrix, first):
                reason = f"{_says(matrix, first)}, and {_says(matrix, other)}"
                return Impossible("two-decays", {"first": list(first), "second": list(other)}, reason)
    for i, j in permutations(triples, 2):
        one, two = triples[i], triples[j]
        if matrix[i][j] * _forced(matrix, one) != matrix[j][i] * _forced(matrix, two):
            reason = f"{_says(matrix, one)} and {_says(matrix, two)}, but M_{i + 1},{j + 1}α_{i + 1} must be"
            reason += f" M_{j + 1},{i + 1}α_{j + 1} (both are −R_{i + 1},{j + 1}α_{i + 1}α_{j + 1})"
            return Impossible("mirror", {"first": list(one), "second": list(two)}, reason)
    raise AssertionError("the rules are complete: agreeing decays and mirrored entries make a step")


def _out_of_bounds(matrix: Matrix, triple: Triple, decay: Fraction) -> Impossible | None:
    j, said, at = triple[1], _says(matrix, triple), {"triple": list(triple)}
    if not 0 <= decay <= 1:
        return Impossible("decay-range", at, f"{said}, outside [0, 1]")
    if decay < matrix[j][j]:
        name = f"R_{j + 1},{j + 1}α_{j + 1}"
        return Impossible(
            "erase-sign", at, f"{said}, so {name} = {_told(decay - matrix[j][j])}, but it is at least 0"
        )
    length = sum((row[j] ** 2 for row in matrix), Fraction(0))
    if length > decay**2:
        reason = f"{said}, but column {j + 1} has the squared length {_told(length)}, more than α_{j + 1}²"
        return Impossible("long-column", at, reason)
    return None


def _two_channels(matrix: Matrix, i: int, j: int, bounded: bool) -> Step | Impossible:
    """(α_j − a)(α_j − b) = M_ij² with a = M_jj, b = M_ii/r and α_i = rα_j; R ⪰ 0 asks for the larger root."""
    ratio = matrix[j][i] / matrix[i][j]
    a, b, square = matrix[j][j], matrix[i][i] / ratio, matrix[i][j] ** 2
    if bounded and (found := _pair_refused(matrix, i, j, ratio)):
        return found
    half, radicand = (a + b) / 2, ((a - b) / 2) ** 2 + square
    root = Fraction(isqrt(radicand.numerator), isqrt(radicand.denominator))
    if root**2 == radicand:
        decay = half + root or half - root
        return _from_column(matrix, j, decay, {j: decay, i: ratio * decay})
    norm = a * b - square
    size = range(len(matrix))
    alpha = [Surd(matrix[c][c]) for c in size]
    alpha[j], alpha[i] = Surd(half, Fraction(1)), Surd(ratio * half, ratio)
    erase = [[Surd(Fraction(0)) for _ in size] for _ in size]

    def over_decay(factor: Fraction) -> Surd:
        """factor/α_j, as (half + √D)(half − √D) is the product of the roots."""
        return Surd(factor * half / norm, -factor / norm)

    for place, entry in ((i, b), (j, a)):
        quotient = over_decay(-entry)
        erase[place][place] = Surd(1 + quotient.p, quotient.q)
    erase[i][j] = erase[j][i] = over_decay(-matrix[i][j])
    return Step(tuple(alpha), tuple(map(tuple, erase)), radicand)


def _pair_refused(matrix: Matrix, i: int, j: int, ratio: Fraction) -> Impossible | None:
    pair, names = {"pair": [i, j]}, f"{_entry(matrix, i, j)} and {_entry(matrix, j, i)}"
    if ratio < 0:
        product = f"R_{i + 1},{j + 1}²α_{i + 1}α_{j + 1}"
        return Impossible("opposite-signs", pair, f"{names} differ in sign, but their product is {product}")
    a, b, square = matrix[j][j], matrix[i][i] / ratio, matrix[i][j] ** 2
    cap = min(Fraction(1), 1 / ratio)
    told = [_told(x) for x in (a, b, square, ratio, cap)]
    law = f"α_{i + 1} = {told[3]}·α_{j + 1} and (α_{j + 1} − {told[0]})(α_{j + 1} − {told[1]}) = {told[2]}"
    if cap < a or cap < b or (cap - a) * (cap - b) < square:
        why = f"{law} with both factors at least 0, so α_{j + 1} exceeds {told[4]}, the most left for it"
        return Impossible("pair-cap", pair, f"{names} ask for {why}")
    if a + b < 0:
        why = f"{law}, so β is at least 2 − ({_told(a + b)})/α_{j + 1}, more than 2"
        return Impossible("pair-sum", pair, f"{names} ask for {why}")
    return None


def _told(value: Fraction) -> str:
    """The number, or six digits of one that is too long to read."""
    if value.numerator.bit_length() + value.denominator.bit_length() <= READABLE:
        return str(value)
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}…"


def _entry(matrix: Matrix, i: int, j: int) -> str:
    return f"M_{i + 1},{j + 1} = {_told(matrix[i][j])}"


def _says(matrix: Matrix, triple: Triple) -> str:
    i, j, l = (c + 1 for c in triple)  # noqa: E741
    forced = f"α_{j} = M_{j},{j} − M_{i},{j}·M_{j},{l}/M_{i},{l} = {_told(_forced(matrix, triple))}"
    return f"channels {i}, {j}, {l} force {forced}"
