"""Exact reading of user-given numbers."""

import math
from fractions import Fraction
from typing import Protocol, runtime_checkable

from verify.model.errors import RequestError


@runtime_checkable
class HasIntegerRatio(Protocol):
    """What `int`, `float`, `Fraction` and NumPy's floats share: an exact ratio of integers."""

    def as_integer_ratio(self) -> tuple[int, int]: ...


Number = HasIntegerRatio | str
"""An exactly given number: int, float (its exact binary value), Fraction, or text such as ``"1/3"``."""


def to_fraction(value: Number) -> Fraction:
    """The exact rational value of `value`.

    A float stands for the binary fraction it stores (0.1 is 3602879701896397/2**55); text is read as decimal
    or ratio (``"0.1"`` is 1/10).

    Raises:
        RequestError: `value` is infinite, NaN, or not a number.
    """
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise RequestError(f"{value!r} is not a rational number; write e.g. 3, -1/3 or 0.25") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestError(f"{value!r} is not a finite number; infinities and NaN have no exact value")
    # The protocol's own check is slow; these are the usual cases.
    if not isinstance(value, int | float | Fraction | HasIntegerRatio):
        raise RequestError(f"{value!r} is not a number; give an int, float, Fraction or text such as '1/3'")
    return Fraction(*value.as_integer_ratio())
