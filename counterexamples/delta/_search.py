"""The searches behind the delta rule's witnesses: rational unit keys, and two writes whose order matters."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import count, product
from math import gcd, isqrt
from typing import Any

OVERLAP = Fraction(99, 100)


def unit_keys() -> list[dict[str, Any]]:
    """The narrowest two rational unit keys with overlap 0.99, entries in hundredths, the first key e₁."""
    scale = OVERLAP.denominator
    rest = scale**2 - OVERLAP.numerator**2
    squares = next(found for terms in count(1) for found in _squares(rest, terms, isqrt(rest)))
    width = len(squares) + 1
    first = ["1"] + ["0"] * (width - 1)
    second = [str(OVERLAP), *(f"{entry}/{scale}" for entry in squares)]
    values = ([str(int(place == 0)), str(int(place == 1))] for place in (0, 1))
    writes = [{"beta": "1", "key": k, "value": v} for k, v in zip((first, second), values, strict=True)]
    return [{"writes": writes, "query": first}]


def _squares(total: int, terms: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Falling positive numbers, that many, whose squares have this sum; largest first."""
    if terms == 0:
        if total == 0:
            yield ()
        return
    for entry in range(min(largest, isqrt(total)), 0, -1):
        for others in _squares(total - entry**2, terms - 1, entry):
            yield (entry, *others)


def two_orders() -> list[dict[str, Any]]:
    """Two writes under one unit key that leave different reads in the two orders.

    By key width, then by the denominators of key and strength, strengths in (0, 1].
    """
    sizes = ((width, scale) for width in count(1) for scale in range(1, 6))
    return next(found for width, scale in sizes for found in _ordered(width, scale))


def _ordered(width: int, scale: int) -> Iterator[list[dict[str, Any]]]:
    keys = [k for k in product(range(1, scale + 1), repeat=width) if sum(x * x for x in k) == scale**2]
    strengths = [Fraction(n, scale) for n in range(1, scale + 1) if gcd(n, scale) == 1]
    for key, beta in product(keys, strengths):
        # Under a unit key two writes leave (1 − β)·β of the first value and β of the second.
        early, late = (1 - beta) * beta, beta
        if early != late:
            yield [_replay(key, scale, beta, order, (early, late)) for order in ((0, 1), (1, 0))]


def _replay(
    key: tuple[int, ...],
    scale: int,
    beta: Fraction,
    order: tuple[int, int],
    shares: tuple[Fraction, Fraction],
) -> dict[str, Any]:
    shown = [str(Fraction(x, scale)) for x in key]
    values = (["1", "0"], ["0", "1"])
    writes = [{"beta": str(beta), "key": shown, "value": values[place]} for place in order]
    output = [str(shares[order.index(place)]) for place in (0, 1)]
    return {"writes": writes, "query": shown, "output": output}
