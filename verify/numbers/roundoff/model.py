"""The rounding error of a program on boxes of inputs, by the mean value theorem.

Write r_i for the rounding error of node i. The computed result minus the exact one is F(x, r) - F(x, 0), so
it is the sum over i of dF/dr_i(x, t r) r_i for some t in [0, 1]. Both factors are enclosed: the derivatives
by one backward pass over ranges that hold every t, and |r_i| <= u 2^⌊log2 |y|⌋ for the exact result y of the
operation on computed operands, half a unit in its last place (IEEE 754-2019, 4.3.1). No term of second order
is left over, and subnormals are covered. On small boxes it tends to the first-order bound with the improved
rounding model of Solovyev et al., Rigorous Estimation of Floating-Point Round-off Errors with Symbolic Taylor
Expansions, TOPLAS 41(1), 2018, section 3.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from verify.numbers.formats import Format, round_to
from verify.numbers.roundoff.intervals import Array, Intervals, above
from verify.numbers.roundoff.program import Node, Program

_ONE, _TWO = (Intervals(np.full(1, x), np.full(1, x)) for x in (1.0, 2.0))


@dataclass(frozen=True)
class Rounding:
    """How a program is rounded.

    Args:
        format: of every value, to nearest.
        rounded_inputs: whether inputs are reals that are rounded first, or values of the format.
        function_ulps: exp and log err by at most this many units in the last place of their result; sqrt is
            rounded to nearest like the operators, by half of one.
    """

    format: Format
    rounded_inputs: bool
    function_ulps: Fraction

    @cached_property
    def relative(self) -> dict[bool, float]:
        """The error of an operator (False) or a function (True), over the power of two below its result."""
        u = float(self.format.unit_roundoff)
        return {False: u, True: u * above(2 * self.function_ulps)}

    @cached_property
    def least(self) -> dict[bool, float]:
        """The same among subnormals; twice what it is, because float64 has no half of its least number."""
        quantum = float(self.format.min_subnormal)
        return {False: quantum, True: quantum * math.ceil(2 * self.function_ulps)}

    @cached_property
    def largest(self) -> float:
        """The largest finite number."""
        return float(self.format.max)


def errors(program: Program, inputs: list[Intervals], rounding: Rounding) -> tuple[Array, Intervals]:
    """Bounds of |computed - exact| for each box, and the ranges of the computed results.

    A bound is infinite where a division by zero, a root or logarithm outside its domain, or an overflow is
    not excluded.

    Args:
        program: what is computed.
        inputs: one array of intervals per input, all of one length.
        rounding: how.
    """
    with np.errstate(all="ignore"):
        values, rounded = _forward(program, inputs, rounding)
        total = np.zeros(len(inputs[0].low)) if inputs else np.zeros(1)
        for slope, error in zip(_backward(program, values), rounded, strict=True):
            total = np.where(error == 0, total, _up(total + _up(slope.magnitude * error)))
        for value in values:
            # False where nothing is known of the value.
            total = np.where(value.magnitude < rounding.largest, total, np.inf)
    return np.where(np.isnan(total), np.inf, total), values[-1]


def _forward(
    program: Program, inputs: list[Intervals], rounding: Rounding
) -> tuple[list[Intervals], list[Array]]:
    """Ranges of all values on the way from exact to computed, and bounds of their rounding errors.

    How far a result is rounded follows from the computed operands alone; their own ranges are kept beside,
    because rounding keeps the order of numbers and so never leaves a range that ends in the format.
    """
    values: list[Intervals] = []
    computed: list[Intervals] = []
    rounded: list[Array] = []
    given = iter(inputs)
    for node in program.nodes:
        value = here = next(given) if node.operation == "input" else _constant(node.value)
        if node.arguments:
            value, here = _result(node, values), _result(node, computed)
        error = _rounding_error(program, node, here, rounding)
        values.append(value.widened(error) if error.any() else value)
        computed.append(_computed(node, here, error, rounding))
        rounded.append(error)
    return values, rounded


def _computed(node: Node, exact: Intervals, error: Array, rounding: Rounding) -> Intervals:
    """The range of a rounded result."""
    if node.operation in ("exp", "log"):
        return exact.widened(error)
    return exact.rounded_to(rounding.format) if error.any() else exact


def _result(node: Node, values: list[Intervals]) -> Intervals:
    """The exact result of an operation on ranges of its operands."""
    operands = [values[place] for place in node.arguments]
    match node.operation:
        case "neg":
            return -operands[0]
        case "add":
            return operands[0] + operands[1]
        case "sub":
            return operands[0] - operands[1]
        case "mul" if node.arguments[0] == node.arguments[1]:
            return operands[0].square()
        case "mul":
            return operands[0] * operands[1]
        case "div":
            return operands[0] / operands[1]
        case "sqrt":
            return operands[0].sqrt()
        case "exp":
            return operands[0].exp()
        case _:
            return operands[0].log()


def _rounding_error(program: Program, node: Node, value: Intervals, rounding: Rounding) -> Array:
    """The largest error that rounding a number of ``value`` makes."""
    if node.operation == "constant":
        return _constant_error(node.value, rounding.format)
    size = value.magnitude
    if node.operation == "neg" or (node.operation == "input" and not rounding.rounded_inputs):
        return np.zeros_like(size)
    if _scales(program, node):
        return np.full_like(size, rounding.least[False])
    function = node.operation in ("exp", "log")
    return np.maximum(rounding.relative[function] * _power_below(size), rounding.least[function])


@cache
def _constant(value: Fraction) -> Intervals:
    return Intervals.around(value)


@cache
def _constant_error(value: Fraction, format: Format) -> Array:
    nearest = round_to(format, value)
    return np.array([np.inf if nearest is None else above(abs(nearest - value))])


def _scales(program: Program, node: Node) -> bool:
    """Whether it multiplies or divides by a power of two, which rounds nothing that does not underflow."""
    factors = {"mul": node.arguments, "div": node.arguments[1:]}.get(node.operation, ())
    sizes = [abs(c.value) for c in (program.nodes[a] for a in factors) if c.operation == "constant"]
    return any(x and all(n & (n - 1) == 0 for n in x.as_integer_ratio()) for x in sizes)


def _power_below(size: Array) -> Array:
    """The largest power of two p < size, or size / 2 where that is one: numbers up to size are at most p u
    from the nearest of the format."""
    mantissa, exponent = np.frexp(size)
    power = np.ldexp(1.0, exponent - np.where(mantissa == 0.5, 2, 1))
    return np.where(np.isfinite(size) & (size > 0), power, size)


def _backward(program: Program, values: list[Intervals]) -> list[Intervals]:
    """Ranges of the derivatives of the result with respect to every value; each is used by a later one."""
    last = len(values) - 1
    slopes = {last: _ONE}
    for place in range(last, -1, -1):
        for argument, factor in _partials(program.nodes[place], values):
            passed = slopes[place] if factor is None else slopes[place] * factor
            slopes[argument] = slopes[argument] + passed if argument in slopes else passed
    return [slopes[place] for place in range(last + 1)]


def _partials(node: Node, values: list[Intervals]) -> list[tuple[int, Intervals | None]]:
    """The operands and the derivatives with respect to them; None stands for 1."""
    if not node.arguments:
        return []
    a, b = node.arguments[0], node.arguments[-1]
    match node.operation:
        case "neg":
            return [(a, -_ONE)]
        case "add":
            return [(a, None), (b, None)]
        case "sub":
            return [(a, None), (b, -_ONE)]
        case "mul" if a == b:
            return [(a, _TWO * values[a])]
        case "mul":
            return [(a, values[b]), (b, values[a])]
        case "div":
            return [(a, _ONE / values[b]), (b, -(values[a] / values[b].square()))]
        case "sqrt":
            return [(a, _ONE / (_TWO * values[a].sqrt()))]
        case "exp":
            return [(a, values[a].exp())]
        case _:
            return [(a, _ONE / values[a])]


def _up(x: Array) -> Array:
    return np.asarray(np.nextafter(x, np.inf))
