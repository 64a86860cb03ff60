"""The rounding error of a program over a box, by division into boxes until the bound is nearly attained."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction
from verify.numbers.formats import FLOAT64, Format
from verify.numbers.roundoff.intervals import Array, Intervals, above, below
from verify.numbers.roundoff.model import Rounding, errors
from verify.numbers.roundoff.program import Program, box_of, parse

_BATCH = 2048
"""Boxes divided at once."""
_AS_GOOD = 1.001
"""Two ways to halve a box are equally good when the bounds they leave differ by at most this factor."""


@dataclass(frozen=True)
class ErrorBound:
    """What is proved of a program on a box.

    Args:
        absolute: no rounded run is further than this from the exact result; infinite where a division by
            zero, a value outside a function's domain or an overflow was not excluded.
        low: no computed result is below it.
        high: no computed result is above it.
        point: inputs at which the worst case of the model is at least ``attained``.
        attained: the worst case of the model there; ``absolute`` exceeds the model's own supremum by at most
            the factor ``absolute / attained``.
        boxes: how many were examined.
    """

    absolute: float
    low: float
    high: float
    point: dict[str, float]
    attained: float
    boxes: int


def error_bound(
    program: str | Program,
    box: Mapping[str, tuple[Number, Number]],
    format: Format = FLOAT64,
    *,
    rounded_inputs: bool = False,
    function_ulps: Number = 1,
    tightness: float = 1.01,
    most_boxes: int = 200_000,
) -> ErrorBound:
    """A rigorous bound of |computed - exact| for all inputs of a box.

    Args:
        program: text (see `program.parse`) or what it was read into.
        box: the range of every input.
        format: of all values; every operation rounds to nearest, ties anywhere.
        rounded_inputs: inputs are any reals of the box, rounded first; else they are values of the format,
            and their rounding is nobody's error.
        function_ulps: exp and log err by at most this many units in the last place of their result.
        tightness: stop once the bound is at most this factor above the model's worst case.
        most_boxes: stop after so many boxes; what is then known is a bound all the same.

    Raises:
        RequestError: the program or the box cannot be read, or a constant is not in the format's range.
    """
    if not isinstance(program, Program):
        program = parse(program)
    if any(abs(node.value) > format.max for node in program.nodes):
        raise RequestError(f"a constant is beyond the largest {format.name}, {float(format.max):.3g}")
    ranges = box_of(program, box)
    low = np.array([[below(a)] for a, _ in ranges]).reshape(len(ranges), 1)
    high = np.array([[above(b)] for _, b in ranges]).reshape(len(ranges), 1)
    rounding = Rounding(format, rounded_inputs, to_fraction(function_ulps))
    search = _Search(program, rounding, low, high)
    while search.boxes < most_boxes and search.divide(tightness):
        pass
    return search.result()


class _Search:
    """Boxes ``[inputs, n]`` still to be divided, and the largest bound of all others."""

    def __init__(self, program: Program, rounding: Rounding, low: Array, high: Array) -> None:
        self._program = program
        self._rounding = rounding
        self._low = self._high = np.empty((len(low), 0))
        self._bounds = np.empty(0)
        self._width = np.maximum(high - low, np.finfo(np.float64).tiny)
        self._settled = self._attained = 0.0
        self._point: list[float] = []
        self.boxes = 0
        self._values = self._examine(low, high)

    def _examine(self, low: Array, high: Array) -> Intervals:
        """Bound boxes, and see what the model attains at their midpoints; the ranges of their results."""
        bounds, values = self._errors(low, high)
        self._low = np.concatenate([self._low, low], axis=1)
        self._high = np.concatenate([self._high, high], axis=1)
        self._bounds = np.concatenate([self._bounds, bounds])
        middle = low + (high - low) / 2
        there = self._errors(middle, middle)[0]
        best = int(np.argmax(there))
        if not self._point or there[best] > self._attained:
            self._attained, self._point = float(there[best]), middle[:, best].tolist()
        return values

    def divide(self, tightness: float) -> bool:
        """Halve the boxes with the largest bounds; False once none needs it, or can be halved."""
        needed = self._bounds > tightness * self._attained
        self._settled = max(self._settled, float(self._bounds[~needed].max(initial=0.0)))
        self._keep(needed)
        if not self._low.size:
            return False
        chosen = np.argsort(self._bounds)[-_BATCH:]
        low, high = self._low[:, chosen], self._high[:, chosen]
        axis, columns = self._best_axis(low, high), np.arange(len(chosen))
        middle = (low + (high - low) / 2)[axis, columns]
        if (middle <= low[axis, columns]).all():
            return False
        rest = np.ones(len(self._bounds), dtype=bool)
        rest[chosen] = False
        self._keep(rest)
        left, right = high.copy(), low.copy()
        left[axis, columns] = right[axis, columns] = middle
        self._examine(np.concatenate([low, right], axis=1), np.concatenate([left, high], axis=1))
        return True

    def _keep(self, mask: NDArray[np.bool_]) -> None:
        self._low, self._high, self._bounds = self._low[:, mask], self._high[:, mask], self._bounds[mask]

    def result(self) -> ErrorBound:
        return ErrorBound(
            max(self._settled, float(self._bounds.max(initial=0.0))),
            float(self._values.low[0]),
            float(self._values.high[0]),
            dict(zip(self._program.inputs, self._point, strict=True)),
            self._attained,
            self.boxes,
        )

    def _errors(self, low: Array, high: Array) -> tuple[Array, Intervals]:
        self.boxes += low.shape[1]
        inputs = [Intervals(a, b) for a, b in zip(low, high, strict=True)]
        return errors(self._program, inputs, self._rounding)

    def _best_axis(self, low: Array, high: Array) -> NDArray[np.intp]:
        """For every box the input whose halving lowers the bound most; of equally good ones the widest."""
        middle, worst = low + (high - low) / 2, []
        width = np.where((low < middle) & (middle < high), (high - low) / self._width, -1.0)
        for axis in range(len(low)):
            left, right = high.copy(), low.copy()
            left[axis] = right[axis] = middle[axis]
            halves = np.concatenate([low, right], axis=1), np.concatenate([left, high], axis=1)
            worst.append(self._errors(*halves)[0].reshape(2, -1).max(axis=0))
        as_good = np.array(worst) <= _AS_GOOD * np.min(worst, axis=0)
        return np.asarray(np.argmax(np.where(as_good, width, width - 2.0), axis=0))
