"""Inequalities between explicit numbers: an enclosure of a term lies strictly on the stated side of a bound.

Data: ``term`` (see ``terms.py``; no sums, no families), ``values``, a rational for each of its variables, and
``above``, ``below`` or both: rationals that the term must exceed, must stay under.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import BITS, Interval, exp
from verify.checkers.reading import Wrong, word
from verify.checkers.terms import IllFormed, Term, free_variables, name, rational, read
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "interval bounds"
KINDS = frozenset({"inequality"})
LARGEST_POWER = 2**22
"""Bits that a power may need."""


class _Open(Exception):
    """An enclosure is too wide: neither side of a bound, or not even that the term is defined, is certain."""


def judge(obligation: Obligation) -> Check:
    """``proved`` on the stated side, ``refuted`` on the other, ``undecided`` when an enclosure straddles."""
    try:
        return word(NAME, obligation, _bounds)
    except _Open as gap:
        return Check(NAME, "checker", Verdict.UNDECIDED, str(gap))


def _bounds(data: Mapping[str, Any]) -> str:
    term = read(data["term"])
    values = {name(key): rational(value) for key, value in dict(data["values"]).items()}
    if set(values) != free_variables(term):
        raise IllFormed(f"values are given for {sorted(values)}, the term has {sorted(free_variables(term))}")
    bounds = {side: rational(data[side]) for side in ("above", "below") if side in data}
    if not bounds:
        raise IllFormed("no bound is stated")
    found = enclose(term, values)
    for side, bound in bounds.items():
        holds, fails = found.low > bound, found.high <= bound
        if side == "below":
            holds, fails = found.high < bound, found.low >= bound
        if fails:
            raise Wrong(f"the term is in {found}, not {side} {bound}")
        if not holds:
            raise _Open(f"the enclosure {found} holds the bound {bound}")
    return f"the term is in {found}"


def enclose(term: Term, values: Mapping[str, Fraction]) -> Interval:
    """An interval around the value of a term."""
    head = term[0]
    if head == "q":
        return Interval.point(Fraction(term[1]))
    if head == "v":
        return Interval.point(values[term[1]])
    if head in ("+", "*"):
        total, *others = (enclose(item, values) for item in term[1:])
        for item in others:
            total = total + item if head == "+" else total * item
        return total
    if head not in ("^", "exp", "log"):
        raise IllFormed(f"{head!r} has no place in an explicit number")
    inner = enclose(term[1], values)
    if head == "^":
        return _power(inner, term[2])
    if head == "exp":
        return Interval(exp(inner.low).low, exp(inner.high).high)
    if inner.low <= 0 < inner.high:
        raise _Open(f"the logarithm of a number in {inner} may not exist")
    return Interval(log(inner.low).low, log(inner.high).high)


def _power(base: Interval, exponent: int) -> Interval:
    ends = (base.low, base.high)
    size = max(abs(abs(x.numerator).bit_length() - x.denominator.bit_length()) + 1 for x in ends)
    if size * abs(exponent) > LARGEST_POWER:
        raise IllFormed(f"the power {exponent} of a number in {base} is too large to write out")
    if exponent < 0:
        divisor = _power(base, -exponent)
        if not divisor.excludes_zero and divisor.low < divisor.high:
            raise _Open(f"the quotient by a number in {divisor} may not exist")
        return Interval.point(1) / divisor
    result, square = Interval.point(1), base
    while exponent:
        if exponent % 2:
            result = result * square
        square, exponent = square * square, exponent // 2
    return result


def log(x: Fraction) -> Interval:
    """An interval around ln x for x > 0: x = m·2^e with m near 1, and ln m = 2·artanh((m − 1)/(m + 1)).

    Raises:
        ValueError: x is not positive.
    """
    if x <= 0:
        raise ValueError("the logarithm of a number that may be 0 or less")
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** exponent
    return _artanh((m - 1) / (m + 1)) + Interval.point(exponent) * _artanh(Fraction(1, 3))


def _artanh(z: Fraction) -> Interval:
    """An interval around 2·artanh z = 2(z + z³/3 + z⁵/5 + …) for |z| <= 1/3."""
    ratio, term = Interval.point(z * z), Interval.point(2 * z)
    total, odd = Interval.point(0), 1
    # The remainder is below the next term over 1 − z², which is at least 8/9.
    while term.magnitude > abs(z) / 2**BITS:
        total = total + term / Interval.point(odd)
        odd += 2
        term = term * ratio
    rest = 2 * max(abs(term.low), abs(term.high))
    return total + Interval(-rest, rest)
