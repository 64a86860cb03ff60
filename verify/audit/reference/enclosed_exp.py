"""The exponential in float64 with a proven error, whatever the library's exp is worth."""

import math
from fractions import Fraction

import numpy as np

from verify.audit.case import Array
from verify.model.errors import RequestError

_U = Fraction(1, 2**53)
# ln 2 = _LN2_HIGH + _LN2_LOW + less than 2^-86; the first part has 32 bits, so that k times it is exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
_DEGREE = 13
_COEFFICIENTS = tuple(1 / math.factorial(i) for i in range(_DEGREE + 1))
# |g - k ln 2| <= (1/2 + 2 u |g| / ln 2) ln 2 for the nearest integer k of the computed g / ln 2.
_REACH = Fraction("0.346574")
_LOWEST, _HIGHEST = -746.0, 709.0
_SUBNORMAL, _SMALLEST = 2.0**-1000, 2.0**-1074
_BLOCK = 1 << 15


def _relative_error() -> float:
    """The bound of |a - e^g| / a, derived from the steps of `_exponential` for results that do not underflow.

    r: u |r| for each of the two subtractions, below 2^-72 for the rest. Horner's
    s_i = 1/i! + r s_(i+1): E_i = |c_i - 1/i!| + R E_(i+1) + u R S_(i+1) + u S_i with S_i >= |s_i|, R >= |r|.
    The last addition rounds by u of the result, which is at least e^-R. Taylor's remainder is at most
    R^14 e^R / 14!.
    """
    reach = _REACH * (1 + 4 * _U)
    size = error = Fraction(0)
    for i in reversed(range(_DEGREE + 1)):
        exact, rounded = Fraction(1, math.factorial(i)), Fraction(_COEFFICIENTS[i])
        error = abs(rounded - exact) + reach * error + _U * reach * size
        size = (rounded + reach * size * (1 + _U)) * (1 + _U)
        error += _U * size if i else 0
    below = 1 - reach + reach**2 / 2 - reach**3 / 6
    remainder = reach ** (_DEGREE + 1) / math.factorial(_DEGREE + 1) * 3 / 2
    argument = 2 * _U * reach + Fraction(1, 2**72)
    total = (error + remainder) / below + _U + argument
    # Products of these terms, and the rounding of a times the bound itself.
    return float(total * (1 + Fraction(1, 2**40)))


RELATIVE_ERROR = _relative_error()


def enclosed_exp(g: Array) -> tuple[Array, Array]:
    """(a, error) with |a - e^g| <= error for every gate; e^0 = 1 and e^-inf = 0 are exact.

    g = k ln 2 + r with |r| <= 0.3466, e^r by its Taylor polynomial of degree 13, times 2^k. The error is
    `RELATIVE_ERROR` (3.2 units of 2^-53) of a, and where a is tiny at least that of the gradual underflow.

    Raises:
        RequestError: a gate is NaN, or so large that its exponential overflows.
    """
    if not (g <= _HIGHEST).all():
        raise RequestError(
            f"the gate {g[~(g <= _HIGHEST)][0]} has no decay in float64; give gates of at most 0"
        )
    values = np.empty(g.shape)
    flat, out = np.ravel(g), values.reshape(-1)
    for first in range(0, flat.size, _BLOCK):
        part = slice(first, first + _BLOCK)
        out[part] = _exponential(np.maximum(flat[part], _LOWEST))
    errors = RELATIVE_ERROR * values
    errors[values < _SUBNORMAL] += 4 * _SMALLEST
    values[g == -np.inf] = 0.0
    errors[(g == 0) | (g == -np.inf)] = 0.0
    return values, errors


def _exponential(g: Array) -> Array:
    """e^g for gates between `_LOWEST` and `_HIGHEST`."""
    k = np.rint(g * _PER_LN2)
    r = g - k * _LN2_HIGH
    r -= k * _LN2_LOW
    s = np.full_like(r, _COEFFICIENTS[-1])
    for coefficient in reversed(_COEFFICIENTS[:-1]):
        s *= r
        s += coefficient
    return np.asarray(np.ldexp(s, k.astype(np.int32)))
