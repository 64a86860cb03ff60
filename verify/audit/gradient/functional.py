"""The linear functional whose gradient is asked for, and the rows a gradient is measured in."""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case

_STEPS = 4.0
CONSTANTS = ("A_log", "A", "dt_bias", "sink")
"""What a function may be differentiated by that is the same at every token, one of each output head."""


@dataclass(frozen=True, eq=False)
class Cotangent:
    """Coefficients of the output ``[B, T, HV, V]`` and of the final state ``[B, HV, K, V]``.

    ``state`` is zero where the final state takes no part.
    """

    output: Array
    state: Array


def cotangent(case: Case, with_state: bool) -> Cotangent:
    """Multiples of 1/4 between -1 and 1, which every format holds, drawn from the case's seed."""
    s = case.shape
    rng = np.random.default_rng([case.seed % 2**32, 77])
    output = rng.integers(-4, 5, (s.B, s.T, s.HV, s.V)) / _STEPS
    state = rng.integers(-4, 5, (s.B, s.HV, s.K, s.V)) / _STEPS
    return Cotangent(output, state if with_state else np.zeros_like(state))


def row_axes(case: Case, field: str) -> tuple[int, ...]:
    """The axes over which the error of a gradient is measured by its norm; those of constants too."""
    if field == "initial_state":
        return (-2, -1)
    if field in CONSTANTS:
        return (-1,) if field == "dt_bias" and case.kind.gate == "channel" else ()
    return () if getattr(case, field).ndim == 3 else (-1,)


def norm(case: Case, field: str, array: Array) -> Array:
    """2-norms of the rows; leading axes (runs) are kept."""
    return np.asarray(np.sqrt(np.square(array).sum(axis=row_axes(case, field))))


def gathered(case: Case, field: str, spread: Array) -> Array:
    """From one entry per output head to one per head of the input: the sum over the heads it is lent to."""
    s = case.shape
    if field not in case.kind.shared or s.HV == s.H:
        return spread
    return np.asarray(spread.reshape(s.B, s.T, s.H, s.HV // s.H, *spread.shape[3:]).sum(axis=3))
