"""Confirms a float64 reference and its error bounds by balls, which share no rounding analysis with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Case
from verify.audit.reference.ball import balls
from verify.audit.reference.results import Reference

_RESOLVED = 2.0**-100
Row = tuple[list[Any], list[float], float]
"""Balls, the numbers that approximate them, and a bound of the norm of the difference."""


@dataclass(frozen=True)
class Confirmation:
    """How many bounds balls confirm, contradict, or (their radius being too large) leave open.

    ``worst`` is the largest error in units of its bound, infinite for an error where the bound is 0.
    """

    confirmed: int
    contradicted: int
    undecided: int
    worst: float

    @property
    def holds(self) -> bool:
        return self.confirmed > 0 and self.contradicted == 0 and self.undecided == 0


def confirm(
    case: Case, reference: Reference, heads: list[tuple[int, int]] | None = None, precision: int = 128
) -> Confirmation:
    """Compare every output row and final state of the given (sequence, value head) pairs with balls.

    A bound is confirmed when the whole ball around the error's squared norm lies at or below its square, and
    contradicted when the whole ball lies above.
    """
    from flint import ctx

    output, state = balls(case, precision, heads)
    rows: list[Row] = []
    for b, hv in heads if heads is not None else np.ndindex(case.shape.B, case.shape.HV):
        rows += [
            (
                list(output[b, t, hv]),
                reference.output[b, t, hv].tolist(),
                float(reference.output_error[b, t, hv]),
            )
            for t in range(case.shape.T)
        ]
        approximate_state = reference.final_state[b, hv].ravel().tolist()
        rows.append((list(state[b, hv].flat), approximate_state, float(reference.state_error[b, hv])))
    with ctx.workprec(precision):
        return compare(rows)


def compare(rows: Iterable[Row]) -> Confirmation:
    """Whether bounds hold, at the current precision of balls.

    A bound below 2^-100 of the largest number, as that of an exact result, is taken for that: balls that are
    not points cannot say of a difference that it is 0.
    """
    from flint import arb

    everything = list(rows)
    largest = max((abs(y) for _, approximate, _ in everything for y in approximate), default=0.0)
    counts, worst = {"confirmed": 0, "contradicted": 0, "undecided": 0}, 0.0
    for exact, approximate, stated in everything:
        error = max(stated, largest * _RESOLVED)
        differences = [x - arb(y) for x, y in zip(exact, approximate, strict=True)]
        square = sum((d * d for d in differences), arb(0))
        bound = arb(error) * arb(error)
        verdict = "confirmed" if square <= bound else "contradicted" if square > bound else "undecided"
        counts[verdict] += 1
        if not (square.is_exact() and square == 0):
            worst = max(worst, float((square / bound).upper()) ** 0.5 if error > 0 else np.inf)
    return Confirmation(worst=worst, **counts)
