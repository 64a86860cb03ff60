"""The definition in balls, which enclose its exact value whatever happens to be rounded."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit.case import Case
from verify.audit.reference.definition import Heads, evaluate
from verify.audit.reference.results import Compute, Found
from verify.numbers import system

PRECISION = 128


def balls(
    case: Case, precision: int = PRECISION, heads: Heads | None = None
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Balls that contain the exact output ``[B, T, HV, V]`` and final state ``[B, HV, K, V]``.

    ``heads`` lists the (sequence, output head) pairs to compute; the others stay None. Default: all.
    """
    return evaluate(case, system("ball", precision=precision), heads)


def enclosed(compute: Compute) -> Found:
    """Balls; their errors in float64 contain them and the rounding of their midpoints."""
    from flint import ctx

    # Sums outside the number system, as of heads that share an input, take the precision of the process.
    with ctx.workprec(PRECISION):
        return Found("ball", compute(system("ball", precision=PRECISION)), near)


def near(ball: Any) -> tuple[float, float]:
    """The float64 nearest to the midpoint, and how far any point of the ball is from it at most."""
    from flint import arb, ctx

    value = float(ball)
    with ctx.workprec(PRECISION):
        apart = abs(ball - arb(value)).upper()
        return value, 0.0 if apart == 0 else max(float(apart), math.ulp(0.0))
