"""Zeros of equations certified by Krawczyk's test: a box that Newton's map sends into its interior.

Data: ``steps``, pairs (name, term) that may use the names before them; ``equations``, n terms (see
``terms.py``; no sums, no families) in the ``variables``; for each variable the ``centre`` and the ``radius``
of its interval, all rationals; ``inverse``, any rational n×n matrix, best an approximate inverse of the
derivative; and optionally ``apart``, a term that must exceed ``above`` >= 0 on the whole box. If m − Y f(m)
+ (I − Y f′(X))(X − m) lies inside X, the equations have exactly one zero in X (Krawczyk 1969, Moore 1977).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import Interval, decimal, exp
from verify.checkers.inequality import log
from verify.checkers.reading import Wrong, matrix, vector, word
from verify.checkers.terms import IllFormed, Term, name, rational, read
from verify.model.evidence import Check, Obligation

NAME = "Krawczyk test"
KINDS = frozenset({"zero-in-box"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the box certainly holds a zero, and the other term is certainly large enough there."""
    return word(NAME, obligation, _zero)


@dataclass(frozen=True)
class _Dual:
    """An interval with the intervals of its derivatives in all variables."""

    value: Interval
    slopes: tuple[Interval, ...]

    def scaled(self, value: Interval, factor: Interval) -> "_Dual":
        """A function of it with the given value and derivative."""
        return _Dual(value, tuple(factor * slope for slope in self.slopes))

    def __add__(self, other: "_Dual") -> "_Dual":
        slopes = tuple(x + y for x, y in zip(self.slopes, other.slopes, strict=True))
        return _Dual(self.value + other.value, slopes)

    def __mul__(self, other: "_Dual") -> "_Dual":
        pairs = zip(self.slopes, other.slopes, strict=True)
        slopes = tuple(x * other.value + self.value * y for x, y in pairs)
        return _Dual(self.value * other.value, slopes)


def _enclose(term: Term, at: Mapping[str, _Dual], size: int) -> _Dual:
    head = term[0]
    if head == "q":
        return _Dual(Interval.point(Fraction(term[1])), (Interval.point(0),) * size)
    if head == "v":
        if term[1] not in at:
            raise IllFormed(f"{term[1]!r} is neither a variable nor a step before")
        return at[term[1]]
    if head in ("+", "*"):
        total, *others = (_enclose(item, at, size) for item in term[1:])
        for item in others:
            total = total + item if head == "+" else total * item
        return total
    if head not in ("^", "exp", "log"):
        raise IllFormed(f"{head!r} has no place in an explicit equation")
    inner = _enclose(term[1], at, size)
    one = Interval.point(1)
    if head == "exp":
        value = _both(exp, inner.value)
        return inner.scaled(value, value)
    if head == "log":
        return inner.scaled(_both(log, inner.value), one / inner.value)
    result = _Dual(one, (Interval.point(0),) * size)
    for _ in range(abs(term[2])):
        result = result * inner
    if term[2] >= 0:
        return result
    inverse = one / result.value
    return result.scaled(inverse, Interval.point(-1) * inverse * inverse)


def _both(function: Callable[[Fraction], Interval], inside: Interval) -> Interval:
    """An increasing function of an interval."""
    low = function(inside.low)
    return low if inside.low == inside.high else Interval(low.low, function(inside.high).high)


def _evaluated(values: Mapping[str, Interval], steps: list[tuple[str, Term]]) -> dict[str, _Dual]:
    """The variables and, one after the other, the steps."""
    size = len(values)
    units = [tuple(Interval.point(int(i == j)) for j in range(size)) for i in range(size)]
    at = {item: _Dual(value, unit) for (item, value), unit in zip(values.items(), units, strict=True)}
    for item, term in steps:
        if item in at:
            raise IllFormed(f"{item!r} is defined twice")
        at[item] = _enclose(term, at, size)
    return at


def _zero(data: Mapping[str, Any]) -> str:
    names = [name(item) for item in data["variables"]]
    size = len(names)
    equations = [read(item) for item in data["equations"]]
    centre, radius, inverse = vector(data["centre"]), vector(data["radius"]), matrix(data["inverse"])
    sizes = {len(set(names)), *(len(item) for item in (equations, centre, radius, inverse, inverse[0]))}
    if sizes != {size}:
        raise Wrong("the equations, the variables and the box do not fit together")
    if min(radius) <= 0:
        raise Wrong("every radius must be positive")
    box = [Interval(m - r, m + r) for m, r in zip(centre, radius, strict=True)]
    steps = [(name(item), read(term)) for item, term in data["steps"]]
    middle = _evaluated(dict(zip(names, map(Interval.point, centre), strict=True)), steps)
    around = _evaluated(dict(zip(names, box, strict=True)), steps)
    values = [_enclose(term, middle, size).value for term in equations]
    slopes = [_enclose(term, around, size).slopes for term in equations]
    for i, item in enumerate(names):
        found = _image(i, centre, radius, [Interval.point(x) for x in inverse[i]], values, slopes)
        if not (box[i].low < found.low and found.high < box[i].high):
            raise Wrong(f"the image of {item} is {found}, not inside {box[i]}")
    text = f"{size} equations have exactly one zero in a box of radius {decimal(max(radius))}"
    if "apart" in data or "above" in data:
        above = rational(data["above"])
        if above < 0:
            raise Wrong(f"a bound of {above} does not keep anything apart")
        apart = _enclose(read(data["apart"]), around, size).value
        if apart.low <= above:
            raise Wrong(f"the other term is in {apart}, not certainly above {above}")
        text += f"; there the other term is in {apart}"
    return text


def _image(
    i: int,
    centre: list[Fraction],
    radius: list[Fraction],
    row: list[Interval],
    values: list[Interval],
    slopes: list[tuple[Interval, ...]],
) -> Interval:
    """Entry i of m − Y f(m) + (I − Y f′(X))(X − m)."""
    found = Interval.point(centre[i])
    for weight, value in zip(row, values, strict=True):
        found = found - weight * value
    for j, r in enumerate(radius):
        factor = Interval.point(int(i == j))
        for weight, slope in zip(row, slopes, strict=True):
            factor = factor - weight * slope[j]
        found = found + factor * Interval(-r, r)
    return found
