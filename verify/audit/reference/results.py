"""What a correct kernel should return, up to stated errors; in float64 with a rigorous bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit.case import Array, Case
from verify.audit.reference import attention, recurrence, transition
from verify.model.errors import RequestError

# Above the roundings of a norm of fewer than 2^24 entries; and what their squares may lose by underflow.
_UP = 1 + 2.0**-26
_LOST = 2.0**-520


@dataclass(frozen=True)
class Digits:
    """Decimal digits of a tensor's numbers that stand: the fewest, and the median over all numbers."""

    fewest: float
    median: float


@dataclass(frozen=True, eq=False)
class Reference:
    """The exact result up to stated errors.

    Args:
        output: ``[B, T, HV, V]``.
        final_state: ``[B, HV, K, V]``; ``[B, HV, 0, 0]`` for a mechanism without a state.
        output_error: ``[B, T, HV]``, at least the 2-norm over V of the output's error.
        state_error: ``[B, HV]``, at least the Frobenius norm of the state's error.
        level: how it was computed: ``"float64"``, ``"mpmath"``, ``"ball"``, ``"rational"``, or ``"exact"``
            for results that are exact in float64.
        note: why another level than the one asked for; "" when it is that.
        digits: of output and state, how many stand, from ``"mpmath"``.
    """

    output: Array
    final_state: Array
    output_error: Array
    state_error: Array
    level: str = "float64"
    note: str = ""
    digits: Mapping[str, Digits] = field(default_factory=dict)


def float64_reference(case: Case) -> Reference:
    """The definition in float64, with a rigorous bound of its error.

    Raises:
        RequestError: a gate is not a finite number.
    """
    if not case.kind.stateful:
        return Reference(*attention.float64(case))
    return Reference(*(transition if case.kind.directed else recurrence).float64(case))


@dataclass(frozen=True, eq=False)
class Found:
    """Results in the numbers of some system, by tensor.

    Args:
        level: the system.
        tensors: arrays of its numbers.
        near: a float64 near a number, and a bound of their distance, 0 only where they are equal.
        digits: how many decimal digits of each tensor's numbers stand, for a system that knows.
    """

    level: str
    tensors: Mapping[str, NDArray[Any]]
    near: Callable[[Any], tuple[float, float]]
    digits: Mapping[str, Digits] = field(default_factory=dict)

    def rounded(self, name: str, axes: tuple[int, ...]) -> tuple[Array, Array]:
        """A tensor in float64, and bounds of the norms, over ``axes``, of what that leaves out.

        Raises:
            RequestError: a number is beyond the range of float64, or not known well enough to be one.
        """
        numbers = self.tensors[name]
        pairs = np.array([self.near(x) for x in numbers.flat], dtype=np.float64).reshape(-1, 2)
        if not np.isfinite(pairs).all():
            raise RequestError(f"the {name} of the {self.level} reference leaves the range of float64")
        apart = pairs[:, 1].reshape(numbers.shape)
        norm = np.sqrt(np.square(apart).sum(axis=axes)) * _UP + _LOST
        return pairs[:, 0].reshape(numbers.shape), np.where((apart > 0).any(axis=axes), norm, 0.0)


Compute = Callable[[Any], Mapping[str, NDArray[Any]]]
"""Tensors by name, computed in the number system that is handed over."""
