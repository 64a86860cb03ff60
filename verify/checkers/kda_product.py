"""Products of KDA steps (I − R)Diag(α), multiplied out exactly over the rationals or one quadratic field.

Data: ``matrix``; ``factors``, first applied first, each with ``alpha`` and the symmetric matrix ``erase``
R = βkkᵀ; ``radicand`` D, for numbers [p, q] that stand for p + q√D; ``bounded``, whether every step must have
α in [0, 1] and R = βkkᵀ with ‖k‖ = 1 and β in [0, 2]; ``within``, a bound that the Frobenius distance of the
product from the matrix must not exceed (0 for equality).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import decimal
from verify.checkers.reading import Wrong, flag, matrix, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "step multiplier"
KINDS = frozenset({"kda-product"})


@dataclass(frozen=True)
class Surd:
    """p + q√D for a rational D >= 0; every surd of one certificate has the same D."""

    p: Fraction
    q: Fraction
    radicand: Fraction

    def __add__(self, other: "Surd") -> "Surd":
        return Surd(self.p + other.p, self.q + other.q, self.radicand)

    def __sub__(self, other: "Surd") -> "Surd":
        return Surd(self.p - other.p, self.q - other.q, self.radicand)

    def __mul__(self, other: "Surd") -> "Surd":
        p = self.p * other.p + self.q * other.q * self.radicand
        return Surd(p, self.p * other.q + self.q * other.p, self.radicand)

    @property
    def sign(self) -> int:
        """−1, 0 or 1, by comparing p² with q²D where p and q pull apart."""
        first, second = _sign(self.p), _sign(self.q) if self.radicand else 0
        if first * second >= 0:
            return first or second
        return first * _sign(self.p**2 - self.q**2 * self.radicand)


Grid = list[list[Surd]]


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def judge(obligation: Obligation) -> Check:
    """``proved`` when every step is one and their product is the matrix, or as near as stated."""
    return word(NAME, obligation, _product)


def _product(data: Mapping[str, Any]) -> str:
    radicand, within, bounded = rational(data["radicand"]), rational(data["within"]), flag(data["bounded"])
    if radicand < 0 or within < 0:
        raise IllFormed("a radicand or a distance below 0")
    wanted, steps = matrix(data["matrix"]), data["factors"]
    size = range(len(wanted))
    if len(wanted[0]) != len(wanted) or not isinstance(steps, list | tuple) or not steps:
        raise IllFormed("the matrix is not square, or there is no step")
    found = [[_point(int(i == j), radicand) for j in size] for i in size]
    for place, step in enumerate(steps, 1):
        alpha = [_surd(item, radicand) for item in step["alpha"]]
        erase = [[_surd(item, radicand) for item in row] for row in step["erase"]]
        if len(alpha) != len(size) or [len(row) for row in erase] != [len(size) for _ in size]:
            raise IllFormed(f"step {place} is not of size {len(size)}")
        _rank_one(erase, place)
        if bounded:
            _bounds(alpha, erase, place)
        factor = [
            [(_point(int(i == j), radicand) - erase[i][j]) * decay for j, decay in enumerate(alpha)]
            for i in size
        ]
        found = [[_dot(row, [found[e][j] for e in size]) for j in size] for row in factor]
    rest = [[found[i][j] - _point(wanted[i][j], radicand) for j in size] for i in size]
    return _distance(rest, within, len(steps), bounded)


def _distance(rest: Grid, within: Fraction, count: int, bounded: bool) -> str:
    what = f"the product of {count} {'steps' if count > 1 else 'step'}" + (
        ", each within its bounds," if bounded else ""
    )
    for i, row in enumerate(rest):
        for j, entry in enumerate(row):
            if not within and entry.sign:
                raise Wrong(f"{what} differs from the stated matrix at entry ({i + 1}, {j + 1})")
    squares = [entry * entry for row in rest for entry in row]
    total = sum(squares[1:], squares[0])
    if (_point(within**2, total.radicand) - total).sign < 0:
        raise Wrong(f"{what} is further than {decimal(within)} from the stated matrix")
    return f"{what} is the stated matrix" + (f" to within {decimal(within)}" if within else "")


def _rank_one(erase: Grid, place: int) -> None:
    """R = βkkᵀ for some real β and k: symmetric, and every 2×2 minor on a nonzero diagonal entry vanishes."""
    size = range(len(erase))
    if any((erase[i][j] - erase[j][i]).sign for i in size for j in size):
        raise Wrong(f"the erase of step {place} is not symmetric")
    pivot = next((i for i in size if erase[i][i].sign), None)
    if pivot is None:
        if any(entry.sign for row in erase for entry in row):
            raise Wrong(f"the erase of step {place} has a zero diagonal but is not 0")
        return
    for i in size:
        for j in size:
            minor = erase[pivot][pivot] * erase[i][j] - erase[pivot][j] * erase[i][pivot]
            if minor.sign:
                raise Wrong(f"the erase of step {place} has rank above 1")


def _bounds(alpha: list[Surd], erase: Grid, place: int) -> None:
    one = _point(1, alpha[0].radicand)
    for c, decay in enumerate(alpha):
        if decay.sign < 0 or (one - decay).sign < 0:
            raise Wrong(f"decay {c + 1} of step {place} is outside [0, 1]")
    strength = sum((erase[i][i] for i in range(1, len(erase))), erase[0][0])
    if strength.sign < 0 or (one + one - strength).sign < 0:
        raise Wrong(f"the strength of step {place}, the trace of its erase, is outside [0, 2]")


def _dot(left: list[Surd], right: list[Surd]) -> Surd:
    terms = [x * y for x, y in zip(left, right, strict=True)]
    return sum(terms[1:], terms[0])


def _point(value: Fraction | int, radicand: Fraction) -> Surd:
    return Surd(Fraction(value), Fraction(0), radicand)


def _surd(value: object, radicand: Fraction) -> Surd:
    if isinstance(value, list | tuple):
        p, q = value
        return Surd(rational(p), rational(q), radicand)
    return _point(rational(value), radicand)
