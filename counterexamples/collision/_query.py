"""Keys that spread out, and a query whose softmax weights are certainly not orthogonal to a given z."""

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from random import Random
from typing import Any

from derivations.softmax.definition import weights
from verify.model.errors import SearchEnded
from verify.numbers.ball import Ball

BALLS = Ball(200)
"""Fewer bits than the checkers use, so that what is certain here is certain there."""
LARGEST_LOGIT = 5 * 10**4
LONGEST_KEYS = 4
SIZES = tuple(sign * size for size in map(Fraction, ("1/2", "2", "8", "64", "1024")) for sign in (1, -1))
"""Lengths of queries, as multiples of about one over the largest coordinate of the keys."""
DIGITS = 6
"""Significant decimal digits to which gaps are rounded down."""

Vector = Sequence[Fraction]


def spread(tokens: int, width: int) -> list[list[Fraction]]:
    """Distinct keys T×K with coordinates in [−1, 1] and small powers of two as denominators."""
    half = 4
    while (2 * half + 1) ** width < 4 * tokens:
        half *= 2
    source = Random(tokens * width)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < tokens:
        found[tuple(source.randint(-half, half) for _ in range(width))] = None
    return [[Fraction(x, half) for x in key] for key in found]


def separating(keys: Sequence[Vector], z: Sequence[Any], size: Fraction) -> tuple[list[Fraction], Fraction]:
    """A query q and a rational below size·|a(q)·z|, with a(q) the softmax weights of the keys.

    Of the queries tried it is the shortest that separates at least a quarter as far as the best.

    Args:
        keys: T×K, distinct.
        z: T balls.
        size: the largest entry of the direction in which the values move by z.

    Raises:
        SearchEnded: no query tried certainly separates; says which were tried.
    """
    table, column = BALLS.matrix(keys), BALLS.matrix([[x] for x in z])
    tried = 0
    seen: list[tuple[Fraction, list[Fraction], Fraction]] = []
    for query in _candidates(keys, z):
        tried += 1
        logits = BALLS.matmul(table, BALLS.matrix([[x] for x in query]))
        moved = BALLS.matmul(BALLS.transpose(weights(BALLS, logits)), column)
        gap = _below(BALLS.entry(moved, 0, 0), size)
        if gap > 0:
            seen.append((_squared(query), query, gap))
    if not seen:
        raise SearchEnded(
            f"none of {tried} queries certainly tells the histories apart at {BALLS.precision} bits;"
            " multiples of a slanted direction, of axes and of the longest keys were tried; give other keys"
        )
    best = max(gap for _, _, gap in seen)
    _, query, gap = min(item for item in seen if 4 * item[2] >= best)
    return query, gap


def _candidates(keys: Sequence[Vector], z: Sequence[Any]) -> Iterator[list[Fraction]]:
    width = len(keys[0])
    slant = [Fraction(1, i + 1) for i in range(width)]
    axes = [[Fraction(int(i == j)) for j in range(width)] for i in range(min(width, LONGEST_KEYS))]
    used = [t for t in range(len(keys)) if not z[t].contains(0)]
    used.sort(key=lambda t: _squared(keys[t]), reverse=True)
    top = max((abs(x) for key in keys for x in key if x), default=Fraction(1))
    unit = Fraction(2) ** (top.numerator.bit_length() - top.denominator.bit_length())
    fixed = [
        [size / unit * x for x in direction]
        for direction in (slant, *axes, *(keys[t] for t in used[:LONGEST_KEYS]))
        for size in SIZES
    ]
    longest = max(map(_squared, keys))
    for query in [*fixed, *_dominating(keys, z, used)]:
        if any(query) and _squared(query) * longest <= LARGEST_LOGIT**2:
            yield query


def _dominating(keys: Sequence[Vector], z: Sequence[Any], used: Sequence[int]) -> Iterator[list[Fraction]]:
    """λk' with k' the longest key of z, so that one weight outgrows all others (``collision.visible``)."""
    if not used:
        return
    top, *others = used
    leads = [_dot(keys[top], [x - y for x, y in zip(keys[top], keys[t], strict=True)]) for t in others]
    if leads and min(leads) > 0:
        shares = sum(abs(z[t]) for t in others) / abs(z[top])
        mantissa, exponent = shares.abs_upper().man_exp()
        bits = max(0, int(mantissa).bit_length() + int(exponent))
        factor = Fraction(math.ceil((bits + 1) / min(leads)))
        yield [factor * x for x in keys[top]]


def _below(ball: Any, size: Fraction) -> Fraction:
    """A short decimal below size·|ball|; 0 when there is none."""
    mantissa, exponent = ball.abs_lower().man_exp()
    bound = size * int(mantissa) * Fraction(2) ** int(exponent)
    with localcontext(prec=DIGITS, rounding=ROUND_DOWN):
        return Fraction(Decimal(bound.numerator) / Decimal(bound.denominator))


def _squared(x: Vector) -> Fraction:
    return _dot(x, x)


def _dot(x: Vector, y: Vector) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))
