"""The searches behind the GDN form's witnesses: the worst time, growing states, slopes, a lost comparison."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import count, product
from math import exp, isqrt
from typing import Any

from counterexamples.gdn._construct import EXACT, states

LATEST = 50
"""Times that are tried; the safe squared length grows like t/2, so later ones are harmless."""
TOKENS = 40
MILLION = 10**6


def unstable() -> list[dict[str, Any]]:
    """The sharp history of three keys, and the first alternating keys whose state passes a million."""
    time = min(range(2, LATEST), key=_safe)
    last = _two_squares(_safe(time))
    keys = [[str(-x) for x in last]] * (time - 1) + [[str(x) for x in last]]
    sharp = {"keys": keys, "norm_squared": [str(_safe(time))] * time}
    signs = [0] + [1 if place % 2 else -1 for place in range(1, TOKENS)]
    size = next(a for a in count(1) if _peak([a * sign for sign in signs], signs) > MILLION)
    growing = {"keys": [[str(size * sign)] for sign in signs], "values": [[str(sign)] for sign in signs]}
    return [sharp, growing]


def _safe(t: int) -> Fraction:
    """The squared length of keys that brings the eigenvalue to −1 at time t: 4B(t − 1)²/t² = 2t − 1."""
    return Fraction((2 * t - 1) * t * t, 4 * (t - 1) ** 2)


def _two_squares(total: Fraction) -> tuple[Fraction, Fraction]:
    """Two fractions, the larger first, whose squares have this sum; the smallest denominator that will do."""
    sizes = ((scale, first) for scale in count(1) for first in range(isqrt(int(total * scale**2)), 0, -1))
    return next(
        (Fraction(first, scale), Fraction(second, scale))
        for scale, first in sizes
        for second in range(first + 1)
        if first**2 + second**2 == total * scale**2
    )


def _peak(keys: Sequence[int], values: Sequence[int]) -> Fraction:
    found = states([(k,) for k in keys], [(v,) for v in values])
    return max(abs(_entry(state)) for state in found)


def _entry(state: Any) -> Fraction:
    return Fraction(str(EXACT.entry(state, 0, 0)))


def slopes() -> list[dict[str, Any]]:
    """Keys in 0 … 4 and values in 0, 1, softmax flat at query 0: the largest slope of the form.

    Of histories that come to the same, the first with rising keys and the fewest ones.
    """
    histories = product(product(range(5), repeat=3), product((0, 1), repeat=3))
    flat = [found for found in histories if _last(*found, erase=False) == 0]
    keys, values = min(flat, key=lambda found: (-abs(_last(*found, erase=True)), found))
    shared = {"keys": [[str(k)] for k in keys], "values": [[str(v)] for v in values]}
    return [{**shared, "erase": erase} for erase in (False, True)]


def _last(keys: Sequence[int], values: Sequence[int], *, erase: bool) -> Fraction:
    return _entry(states([(k,) for k in keys], [(v,) for v in values], erase=erase)[-1])


def stepwise_loses() -> list[dict[str, Any]]:
    """Scores of mean 0 in sixteenths, values 1, 0, 0: the smallest for which the full expansion is closer.

    Of equally small ones, the one with the largest first score.
    """
    tried = (item for top in count(1) for item in product(range(top, -top - 1, -1), repeat=3))
    found = next(item for item in tried if any(item) and sum(item) == 0 and _lead([x / 16 for x in item]) < 0)
    names = ("s_1", "s_2", "s_3")
    return [{"values": {name: str(Fraction(x, 16)) for name, x in zip(names, found, strict=True)}}]


def _lead(scores: Sequence[float]) -> float:
    """Squared error of the full expansion minus that of the stepwise one, in floating point."""
    a, b, c = scores
    exact, mean = exp(a) / sum(map(exp, scores)), sum(scores) / 3
    full = (1 + a - mean) / 3
    stepwise = (1 - (1 + (b - a) / 2) / 2) * (1 - (1 + c - mean) / 3)
    return (exact - full) ** 2 - (exact - stepwise) ** 2
