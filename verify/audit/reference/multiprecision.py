"""The precision audit: the definition in mpmath at two precisions, and the digits on which they agree."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit.reference.results import Compute, Digits, Found
from verify.numbers import system

LOW, HIGH = 106, 212
"""Bits: twice and four times those of float64."""
MOST_DIGITS = LOW * math.log10(2)


def audited(compute: Compute, low: int = LOW, high: int = HIGH) -> Found:
    """Pairs of the results at the higher and at the lower precision, and how many digits of the lower stand.

    The errors are twice the distance of the two and a unit of the lower precision, besides rounding to
    float64: an estimate from above and no bound, as mpmath proves none.
    """
    lower, higher = (compute(system("multiprecision", precision=bits)) for bits in (low, high))
    pairs = {name: _both(numbers, lower[name]) for name, numbers in higher.items()}
    return Found("mpmath", pairs, near, {name: digits(x) for name, x in pairs.items() if x.size})


def _both(higher: NDArray[Any], lower: NDArray[Any]) -> NDArray[Any]:
    both = np.empty(higher.shape, dtype=object)
    for index, x in np.ndenumerate(higher):
        both[index] = x, lower[index]
    return both


def digits(pairs: NDArray[Any]) -> Digits:
    """How many digits of the pairs' second numbers stand; `MOST_DIGITS` where the two are equal.

    A number is taken to be at least 2^-53 of the tensor's largest one: of a 0 that sums cancel to, none do.
    """
    least = max(abs(x) for x, _ in pairs.flat) * 2.0**-53
    standing = np.array([_standing(x, lower, least) for x, lower in pairs.flat])
    return Digits(float(standing.min()), float(np.median(standing)))


def _standing(x: Any, lower: Any, least: Any) -> float:
    apart = abs(x - lower)
    if apart == 0:
        return MOST_DIGITS
    scale = max(abs(x), least)
    return min(max(-_log10(apart / scale), 0.0), MOST_DIGITS) if scale else 0.0


def _log10(x: Any) -> float:
    """Of a positive mpf, whose exponent may be beyond that of float64."""
    _, mantissa, exponent, bits = x._mpf_
    return (math.log2(int(mantissa) / (1 << int(bits))) + int(exponent) + int(bits)) * math.log10(2)


def near(pair: Any) -> tuple[float, float]:
    """The float64 nearest to the first number, and what `audited` says of its error."""
    x, lower = pair
    value = float(x)
    apart = abs(x - value) + 2 * abs(x - lower) + abs(x) / 2**LOW
    return value, 0.0 if apart == 0 else max(float(apart), math.ulp(0.0))
