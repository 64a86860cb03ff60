"""Errors that do occur: the program is run in its format and compared with balls around the exact result."""

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from verify.model.errors import RequestError
from verify.numbers.convert import Number
from verify.numbers.formats import FLOAT64, Format, round_to
from verify.numbers.roundoff.program import Program, box_of, parse

_TYPES: dict[str, type[np.floating[Any]]] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
}
_BITS = 400
_OPERATORS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}
# Almost half a unit: a real input this far from a float still rounds to it, whatever that float is.
_FAR = 0.499


def observed_error(
    program: str | Program,
    box: Mapping[str, tuple[Number, Number]],
    format: Format = FLOAT64,
    *,
    rounded_inputs: bool = False,
    near: Mapping[str, float] | None = None,
    samples: int = 4000,
    seed: int = 0,
) -> tuple[float, dict[str, float]]:
    """The largest error found in a box, and the inputs where it is: the worst error is at least that.

    Half of the points are uniform in the box, the others around the worst one so far, nearer and nearer.

    Args:
        program: text or what it was read into; its functions are rounded to nearest.
        box: the range of every input.
        format: float64, float32 or float16.
        rounded_inputs: whether inputs are reals up to half a unit from what they round to.
        near: a point to begin with, such as that of a bound.
        samples: points in all.
        seed: of the points.

    Raises:
        RequestError: the program or the box cannot be read, or numpy does not compute in the format.
    """
    if not isinstance(program, Program):
        program = parse(program)
    if format.name not in _TYPES:
        raise RequestError(f"numpy computes in {', '.join(_TYPES)}, not in {format.name}")
    kind, source, ranges = _TYPES[format.name], np.random.default_rng(seed), box_of(program, box)
    low, high = (np.array([float(ends[i]) for ends in ranges]) for i in (0, 1))
    centre = low if near is None else np.array([near[name] for name in program.inputs])
    worst, rounds = 0.0, 16
    for turn in range(rounds):
        points = source.uniform(low, high, (samples // rounds, len(low)))
        points[::2] = centre + (points[::2] - centre) * 0.25**turn
        floats = points.astype(kind)
        away = np.where(source.random(points.shape) < 0.5, _FAR, source.uniform(0, _FAR, points.shape))
        away = away * source.choice([-1.0, 1.0], points.shape) * np.spacing(np.abs(floats)) * rounded_inputs
        results = run(program, floats, format)
        for point, real, result in zip(floats, _reals(floats, away), results, strict=True):
            if all(a <= x <= b for x, (a, b) in zip(real, ranges, strict=True)):
                error = deviation(program, real, float(result))
                if error > worst:
                    worst, centre = error, point.astype(np.float64)
    return worst, dict(zip(program.inputs, centre.tolist(), strict=True))


def run(program: Program, points: NDArray[np.floating[Any]], format: Format) -> NDArray[np.floating[Any]]:
    """The results ``[n]`` of the rounded program at ``[n, inputs]``, computed by numpy in its dtype."""
    kind, given = points.dtype.type, iter(points.T)
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for node in program.nodes:
            operands = [values[place] for place in node.arguments]
            if node.operation == "input":
                values.append(next(given))
            elif node.operation == "constant":
                values.append(kind(round_to(format, node.value) or 0))
            elif node.operation in _OPERATORS:
                values.append(_OPERATORS[node.operation](*operands))
            else:
                values.append(_nearest(node.operation, operands[0]))
    return np.broadcast_to(values[-1], points.shape[:1])


def _nearest(function: str, x: Any) -> Any:
    """The function, rounded to nearest from balls: numpy promises nothing about its own."""
    with ctx.workprec(_BITS):
        exact = [float(getattr(arb(float(number)), function)()) for number in np.atleast_1d(x)]
    return np.array(exact).astype(np.asarray(x).dtype).reshape(np.shape(x))


def deviation(program: Program, real: Sequence[Fraction], result: float) -> float:
    """A number that |result - exact result| certainly reaches; 0 where the result is not finite."""
    given = iter(real)
    values: list[Any] = []
    if not np.isfinite(result):
        return 0.0
    with ctx.workprec(_BITS):
        for node in program.nodes:
            operands = [values[place] for place in node.arguments]
            if not operands:
                exact = next(given) if node.operation == "input" else node.value
                values.append(arb(fmpq(exact.numerator, exact.denominator)))
            elif node.operation in _OPERATORS:
                values.append(_OPERATORS[node.operation](*operands))
            else:
                values.append(getattr(operands[0], node.operation)())
        difference = abs(values[-1] - arb(result)).abs_lower()
        return float(np.nextafter(float(difference), 0.0)) if difference.is_finite() else 0.0


def _reals(floats: NDArray[np.floating[Any]], away: NDArray[np.floating[Any]]) -> list[list[Fraction]]:
    """The real inputs ``away`` from floats, exactly."""
    return [
        [Fraction(float(x)) + Fraction(float(d)) for x, d in zip(point, off, strict=True)]
        for point, off in zip(floats, away, strict=True)
    ]
