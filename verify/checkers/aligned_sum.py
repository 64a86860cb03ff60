"""Sums as tensor cores form them: align to the largest exponent, truncate, add, truncate the result.

Data: ``model`` with ``fraction`` f, ``precision`` p and ``min_exponent`` of the result; ``addend``;
``steps``, a list of lists of pairs of factors, each step adding its products to the result before;
``result``, the last one stated; ``bound`` with ``term`` and ``final``: each step's error must be at most
nwM + r(|S| + nwM) for w and r these two, n numbers that are not 0, the largest of them M in size, S their
exact sum; and ``exceeds``, the m's for which the whole error exceeds m u/(1 − m u) times the sum of absolute
values, u = 2^-p.

An exponent is the largest e with 2^e <= |x|; that of a product is the sum of those of its factors. Factors
are thus read as normal numbers, whatever their format.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import decimal
from verify.checkers.reading import Vector, Wrong, matrix, natural, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "aligned sum"
KINDS = frozenset({"aligned-sum"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the model gives the stated result, within the bound and beyond what is exceeded."""
    return word(NAME, obligation, _replayed)


def _replayed(data: Mapping[str, Any]) -> str:
    fraction, precision = (natural(data["model"][name]) for name in ("fraction", "precision"))
    lowest = int(data["model"]["min_exponent"])
    per_term, final = (rational(data["bound"][name]) for name in ("term", "final"))
    result = exact = rational(data["addend"])
    sizes, share = abs(exact), Fraction(0)
    if not data["steps"]:
        raise IllFormed("there is no step")
    for number, step in enumerate(data["steps"], 1):
        factors = matrix(step)
        products = [a * b for a, b in factors]
        before, terms = result, [x for x in [*products, result] if x]
        result = _step(factors, before, fraction, precision, lowest)
        total = sum(products, before)
        lost = len(terms) * per_term * max(map(abs, terms), default=Fraction(0))
        bound, error = lost + final * (abs(total) + lost), abs(result - total)
        if error > bound:
            raise Wrong(f"step {number} errs by {decimal(error)}, beyond {decimal(bound)}")
        share = max(share, error / bound if bound else share)
        exact, sizes = exact + sum(products), sizes + sum(map(abs, products))
    if result != rational(data["result"]):
        raise Wrong(f"the model gives {result}, not the stated {data['result']}")
    for item in data.get("exceeds", ()):
        relative = Fraction(natural(item), 2**precision)
        if not relative < 1 or abs(result - exact) <= relative / (1 - relative) * sizes:
            raise Wrong(f"an error of {decimal(abs(result - exact))} does not exceed γ_{item} times {sizes}")
    return f"{result}, where exact sums give {exact}; at most {decimal(share)} of a step's bound"


def _step(factors: list[Vector], addend: Fraction, fraction: int, precision: int, lowest: int) -> Fraction:
    terms = [(a * b, _exponent(a) + _exponent(b)) for a, b in factors if a and b]
    if addend:
        terms.append((addend, _exponent(addend)))
    if not terms:
        return Fraction(0)
    grid = Fraction(2) ** (max(exponent for _, exponent in terms) - fraction)
    total = grid * sum(_truncated(x / grid) for x, _ in terms)
    if not total:
        return total
    quantum = Fraction(2) ** (max(_exponent(total), lowest) - precision + 1)
    return quantum * _truncated(total / quantum)


def _truncated(x: Fraction) -> int:
    whole = abs(x.numerator) // x.denominator
    return whole if x > 0 else -whole


def _exponent(x: Fraction) -> int:
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return exponent - (abs(x) < Fraction(2) ** exponent)
