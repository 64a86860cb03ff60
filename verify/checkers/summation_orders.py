"""An inner product in rounded arithmetic, over every order of its sums, with and without fused multiply-adds.

Data: ``left`` and ``right``, n rationals each; ``precision`` and ``min_exponent`` of the format; ``agree``:
true where every order shall give the exact inner product, false where some order shall give another number
although the exact one is of the format. Rounding is to nearest,
ties to even; a number is of the format when it rounds to itself.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Wrong, dot, flag, natural, vector, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "summation orders"
KINDS = frozenset({"summation-orders"})
LARGEST = 9
"""Most products: their sums are formed for every subset, and every cut of it in two."""


def judge(obligation: Obligation) -> Check:
    """``proved`` when the orders agree with the exact inner product, or differ, as stated."""
    return word(NAME, obligation, _ordered)


def _ordered(data: Mapping[str, Any]) -> str:
    left, right, agree = vector(data["left"]), vector(data["right"]), flag(data["agree"])
    precision, lowest = natural(data["precision"]), int(data["min_exponent"])
    if len(left) > LARGEST or precision == 0:
        raise IllFormed(f"more than {LARGEST} products, or no bits")
    exact = dot(left, right)
    found = _results([x * y for x, y in zip(left, right, strict=True)], precision, lowest)
    if not agree and exact != _rounded(exact, precision, lowest):
        raise Wrong(f"{exact} is no number of the format, so that every order must round")
    if agree is not (found == {exact}):
        raise Wrong(f"the orders give {', '.join(map(str, sorted(found)))}; exactly it is {exact}")
    return f"{len(left)} products, exactly {exact}: the orders give {', '.join(map(str, sorted(found)))}"


def _results(products: list[Fraction], precision: int, lowest: int) -> set[Fraction]:
    """The numbers that some order gives, subset by subset; subsets are bits of a number."""
    sums: dict[int, set[Fraction]] = {}
    for chosen in range(1, 2 ** len(products)):
        if chosen & (chosen - 1) == 0:
            sums[chosen] = {_rounded(products[chosen.bit_length() - 1], precision, lowest)}
            continue
        sums[chosen] = set()
        part = (chosen - 1) & chosen
        while part:
            other = chosen ^ part
            addends = set(sums[part])
            if part & (part - 1) == 0:
                addends.add(products[part.bit_length() - 1])
            sums[chosen] |= {_rounded(x + y, precision, lowest) for x in addends for y in sums[other]}
            part = (part - 1) & chosen
    return sums[2 ** len(products) - 1]


def _rounded(x: Fraction, precision: int, lowest: int) -> Fraction:
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    quantum = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    return round(x / quantum) * quantum
