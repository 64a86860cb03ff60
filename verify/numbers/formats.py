"""The float formats of kernels: constants, and rounding to nearest, ties to even.

IEEE 754-2019, sections 3.3 and 4.3.1. A value rounds to the nearest multiple of its quantum 2^(e − p + 1),
where 2^e is its leading power of two or the smallest normal one, whichever is larger; from max + half a
quantum on it becomes infinite.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from verify.model.errors import unknown_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Format:
    """A binary float format with `precision` significand bits (the hidden one counted) and normal exponents
    from `min_exponent` to `max_exponent`."""

    name: str
    precision: int
    min_exponent: int
    max_exponent: int

    @property
    def unit_roundoff(self) -> Fraction:
        """u = 2^−p: |round(x) − x| ≤ u·|x| while round(x) is normal and finite."""
        return Fraction(1, 2**self.precision)

    @property
    def min_normal(self) -> Fraction:
        """The smallest positive normal number."""
        return _power_of_two(self.min_exponent)

    @property
    def min_subnormal(self) -> Fraction:
        """The smallest positive number: the quantum of the subnormals."""
        return _power_of_two(self.min_exponent - self.precision + 1)

    @property
    def max(self) -> Fraction:
        """The largest finite number."""
        return (2 - 2 * self.unit_roundoff) * _power_of_two(self.max_exponent)


FLOAT64 = Format("float64", 53, -1022, 1023)
FLOAT32 = Format("float32", 24, -126, 127)
TF32 = Format("tf32", 11, -126, 127)
BFLOAT16 = Format("bfloat16", 8, -126, 127)
FLOAT16 = Format("float16", 11, -14, 15)

FORMATS = {f.name: f for f in (FLOAT64, FLOAT32, TF32, BFLOAT16, FLOAT16)}


def format_named(name: str) -> Format:
    """The format called `name`.

    Raises:
        RequestError: there is none.
    """
    if name not in FORMATS:
        raise unknown_name("float format", name, FORMATS)
    return FORMATS[name]


def round_to(target: Format, x: Fraction) -> Fraction | None:
    """The value of `target` nearest to x, ties to even; None where it overflows to an infinity.

    The zero of a rounded −2^−1000 is 0: a Fraction has no signed zero.
    """
    if x == 0:
        return x
    quantum = _quantum(target, _leading_exponent(x))
    rounded = round(x / quantum) * quantum
    return None if abs(rounded) > target.max else rounded


def is_representable(target: Format, x: Fraction) -> bool:
    """Whether x is a finite value of `target`."""
    return round_to(target, x) == x


def round_array(target: Format, x: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """`round_to` on every entry of a float64 array; overflow gives ±inf; ±0, ±inf and NaN stay."""
    import numpy as np

    if target == FLOAT64:
        return x.copy()
    _, exponent = np.frexp(x)
    quantum_exponent = np.maximum(exponent - 1, target.min_exponent) - target.precision + 1
    # Both scalings are exact: the first gives at most 2^precision without underflow, the second a value of
    # `target` or, beyond float64 itself, the infinity that is the answer.
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(x, -quantum_exponent)), quantum_exponent)
    return np.where(np.abs(rounded) > float(target.max), np.copysign(np.inf, x), rounded)


def is_representable_array(target: Format, x: "NDArray[np.float64]") -> "NDArray[np.bool_]":
    """Whether each entry of a float64 array is a finite value of `target`."""
    import numpy as np

    return np.asarray(np.isfinite(x) & (round_array(target, x) == x))


def _power_of_two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _quantum(target: Format, exponent: int) -> Fraction:
    return _power_of_two(max(exponent, target.min_exponent) - target.precision + 1)


def _leading_exponent(x: Fraction) -> int:
    """The e with 2^e ≤ |x| < 2^(e+1), for x ≠ 0."""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return e if abs(x) >= _power_of_two(e) else e - 1
