"""Integers and pointers as a Triton kernel computes with them, beside what they would be without wrapping.

Widths follow triton/language/semantic.py: two tensors compute in the wider of their types, and a Python
number takes the type of the tensor it meets.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
_LARGEST = 2.0**61


class Unknown:
    """A value that the source and the launch do not determine."""


UNKNOWN = Unknown()


@dataclass(frozen=True, eq=False)
class Number:
    """A tensor of integers.

    Args:
        exact: in unbounded arithmetic.
        actual: in the kernel's.
        bits: of its type; 1 for truth values.
        signed: whether the type has negative numbers.
        within: the largest exact size of a number of at most 32 bits that it was computed from.
    """

    exact: Integers
    actual: Integers
    bits: int
    signed: bool = True
    within: int = 0

    @property
    def peak(self) -> int:
        """The largest exact size that had to fit into 32 bits on the way to this number, and in it."""
        return self.within if self.bits > 32 else max(self.within, int(np.abs(self.exact).max(initial=0)))

    @property
    def wraps(self) -> bool:
        return not np.array_equal(self.exact, self.actual)

    def cast(self, bits: int, signed: bool) -> "Number":
        return Number(self.exact, wrapped(self.actual, bits, signed), bits, signed, self.peak)

    def shaped(self, change: Callable[[Integers], Any]) -> "Number":
        """Its entries in another arrangement."""
        return Number(change(self.exact), change(self.actual), self.bits, self.signed, self.within)


@dataclass(frozen=True)
class Memory:
    """What a tensor argument points to, in elements from there.

    Args:
        name: of the argument.
        before, after: elements before and after that place.
        dtype: of an element.
        memory: which allocation it is.
        size: of the allocation, in bytes.
        values: the elements from the start of the allocation, where they are known.
    """

    name: str
    before: int
    after: int
    dtype: str
    memory: int
    size: int
    values: tuple[int, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Pointer:
    """A tensor of addresses: offsets from a tensor argument, and where the last that wraps was added."""

    memory: Memory
    exact: Integers
    actual: Integers
    line: int = 0
    text: str = ""

    def moved(self, by: Number, sign: int, line: int, text: str) -> "Pointer":
        """By so many elements. An offset is widened to 64 bits, with its sign, when it meets the address."""
        origin = (line, text) if by.wraps else (self.line, self.text)
        exact, actual = self.exact + sign * by.exact, self.actual + sign * by.actual
        return Pointer(self.memory, exact, actual, *origin)

    def shaped(self, change: Callable[[Integers], Any]) -> "Pointer":
        return Pointer(self.memory, change(self.exact), change(self.actual), self.line, self.text)


Value: TypeAlias = Any
"""A `Number`, `Pointer` or `Unknown`, a Python number, string, bool or None, or a tuple of these."""


def wrapped(x: Integers, bits: int, signed: bool) -> Integers:
    """What is left of integers in so many bits."""
    if bits == 1:
        return np.asarray(x != 0, dtype=np.int64)
    if bits >= 64:
        return x
    low: Integers = np.bitwise_and(x, (1 << bits) - 1)
    if not signed:
        return low
    above: Integers = np.where(low >> (bits - 1) == 1, 1 << bits, 0)
    return low - above


def scalar(value: int, bits: int = 32) -> Number:
    """A Python integer as a tensor, of 64 bits where 32 do not hold it."""
    x = np.array(value, dtype=np.int64)
    return Number(x, x, bits if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else 64)


def as_number(value: Value) -> Number | None:
    """An integer of any kind as a tensor."""
    if isinstance(value, Number):
        return value
    if isinstance(value, bool):
        return scalar(int(value)).cast(1, False)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return scalar(value)
    return None


_Operation: TypeAlias = Callable[[Any, Any], Any]


def _quotient(a: Integers, b: Integers) -> Integers:
    """Towards 0, as hardware divides; 0 for a divisor of 0."""
    size = np.abs(a) // np.maximum(np.abs(b), 1)
    return np.where(b == 0, 0, np.where((a < 0) == (b < 0), size, -size))


def _remainder(a: Integers, b: Integers) -> Integers:
    return a - b * _quotient(a, b)


OPERATIONS: Mapping[str, _Operation] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": _quotient,
    "Mod": _remainder,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "Min": np.minimum,
    "Max": np.maximum,
}
"""By the name of the syntax node, or of the function."""

COMPARISONS: Mapping[str, _Operation] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def combined(name: str, left: Value, right: Value) -> Value:
    """One operation on two integers of any kind, at least one of them a tensor."""
    a, b = as_number(left), as_number(right)
    if a is None or b is None:
        return UNKNOWN
    if not isinstance(left, Number) and b.bits > 1:
        a = a.cast(b.bits, b.signed)
    elif not isinstance(right, Number) and a.bits > 1:
        b = b.cast(a.bits, a.signed)
    if any(x.wraps for x, given in ((a, left), (b, right)) if not isinstance(given, Number)):
        # A Python number that the type does not hold: Triton refuses it.
        return UNKNOWN
    widest = max((a, b), key=lambda x: (x.bits, not x.signed))
    if name in COMPARISONS:
        exact, actual = (
            np.asarray(COMPARISONS[name](x, y)).astype(np.int64)
            for x, y in ((a.exact, b.exact), (a.actual, b.actual))
        )
        return Number(exact, actual, 1, False)
    if widest.bits == 1 and name not in ("BitAnd", "BitOr", "BitXor"):
        return UNKNOWN
    if name == "Mult" and float(np.abs(a.exact).max(initial=0)) * np.abs(b.exact).max(initial=0) > _LARGEST:
        return UNKNOWN
    bits, signed, operation = widest.bits, widest.signed, OPERATIONS[name]
    actual = operation(wrapped(a.actual, bits, signed), wrapped(b.actual, bits, signed))
    within = max(a.peak, b.peak)
    return Number(operation(a.exact, b.exact), wrapped(actual, bits, signed), bits, signed, within)


def chosen(condition: Value, left: Value, right: Value) -> Value:
    """`tl.where` of integers."""
    c, a, b = as_number(condition), as_number(left), as_number(right)
    if c is None or a is None or b is None:
        return UNKNOWN
    widest = max((a, b), key=lambda x: x.bits)
    exact = np.where(c.exact != 0, a.exact, b.exact)
    actual = wrapped(np.where(c.actual != 0, a.actual, b.actual), widest.bits, widest.signed)
    return Number(exact, actual, widest.bits, widest.signed, max(a.peak, b.peak))
