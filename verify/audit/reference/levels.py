"""Which reference judges: the level that was asked for, or a faster one, with the reason."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit.case import Case
from verify.audit.reference.ball import enclosed
from verify.audit.reference.definition import evaluate
from verify.audit.reference.exact import rational
from verify.audit.reference.multiprecision import audited
from verify.audit.reference.results import Compute, Found, Reference, float64_reference
from verify.model.errors import RequestError, unknown_name

LEVELS = ("float64", "mpmath", "ball", "exact")
"""From the fastest to the slowest but for ``mpmath``, which is slower than balls and no proof."""
LIMITS = {"mpmath": 1 << 20, "ball": 1 << 25, "exact": 1 << 20}
"""The most numbers that a level updates for one case: at worst about a minute on one core."""
_FIND: dict[str, Callable[[Compute], Found]] = {"mpmath": audited, "ball": enclosed, "exact": rational}
_STATE_AXES = (-2, -1)


def reference_at(case: Case, level: str) -> Reference:
    """The results of a level, or of the one that stands in for it; see `find`.

    Raises:
        RequestError: there is no such level, or a gate is not a number.
    """

    def compute(numbers: Any) -> dict[str, NDArray[Any]]:
        return dict(zip(("output", "state"), evaluate(case, numbers), strict=True))

    found, note = find(compute, size(case), level)
    if found is None:
        return dataclasses.replace(float64_reference(case), note=note)
    output, output_error = found.rounded("output", (-1,))
    state, state_error = found.rounded("state", _STATE_AXES)
    return Reference(output, state, output_error, state_error, found.level, note, found.digits)


def find(compute: Compute, numbers: int, level: str) -> tuple[Found | None, str]:
    """Results at a level and why they are not at the one asked for; None means float64 shall do.

    Exact rationals end where an exponential is irrational; balls enclose it. A case of more numbers than
    `LIMITS` allows goes to the next faster level with a proof: from rationals and mpmath to balls, from balls
    to float64.

    Raises:
        RequestError: there is no such level.
    """
    if level not in LEVELS:
        raise unknown_name("reference", level, LEVELS)
    if level == "float64":
        return None, ""
    why = f"too large for {level}: {numbers} numbers to update, {LIMITS[level]} is the most"
    if numbers <= LIMITS[level]:
        try:
            return _FIND[level](compute), ""
        except RequestError as problem:
            if level != "exact":
                raise
            why = str(problem)
    found, note = find(compute, numbers, "float64" if level == "ball" else "ball")
    return found, f"{why}; {note}" if note else why


def size(case: Case) -> int:
    """How many numbers the definition updates: entries of states, or products of weights and values."""
    s = case.shape
    each = s.K * s.V if case.kind.stateful else (s.T + 1) * (s.K + s.V) // 2
    return int(np.prod([s.B, s.HV, s.T, each]))
