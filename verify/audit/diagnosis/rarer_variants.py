"""Plausible wrong kernels of mechanisms with directions of their own, a window, a sink or a normaliser."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from verify.audit.case import Case, Directions
from verify.audit.diagnosis.variants import Result, Step, Variant, attention, recurrence


def _decayed_read(case: Case) -> Result | None:
    """None where the definition reads the decayed state, or nothing."""
    if not (case.kind.stateful and case.directions.before_decay):
        return None
    return recurrence(case, Step(erase_reads="decayed"))


def _ungated(case: Case) -> Result | None:
    return None if case.w is None else recurrence(case.replace(w=np.ones_like(case.w)))


def _along(change: Callable[[Directions], Directions]) -> Callable[[Case], Result | None]:
    """Other directions; None for a mechanism that has none of its own."""
    return lambda case: recurrence(case, way=change(case.directions)) if case.kind.directed else None


def _with_epsilon(epsilon: float) -> Callable[[Case], Result | None]:
    """A number added to the sum of products; None for exponentials, whose sum is at least 1."""
    return lambda case: attention(case, epsilon=epsilon) if case.kind.weights == "linear" else None


def _windowed(change: Callable[[int], int]) -> Callable[[Case], Result | None]:
    """Another window; None where there is none."""
    return lambda case: attention(case, window=change(case.kind.window)) if case.kind.window else None


RARER_VARIANTS: tuple[Variant, ...] = (
    Variant(
        "what is removed is read after the decay",
        "a reads the decayed state: S' = α·S + b·aᵀ(α·S) + k·vᵀ",
        _decayed_read,
    ),
    Variant(
        "the directions of reading and removing swapped",
        "what is read with one of the two vectors is removed along the other",
        _along(lambda way: replace(way, read=way.out, out=way.read)),
    ),
    Variant(
        "removal with the opposite sign",
        "what is read is added where it should be removed, or removed where it should be added",
        _along(lambda way: replace(way, out=-way.out)),
    ),
    Variant("write gate missing", "every value is written with weight 1", _ungated),
    Variant(
        "erase gate missing",
        "what is erased is read with the whole key",
        _along(lambda way: way if way.before_decay else replace(way, read=way.key)),
    ),
    Variant("window one token too wide", "a query sees one token too many", _windowed(lambda n: n + 1)),
    Variant("window one token too narrow", "a query sees one token too few", _windowed(lambda n: n - 1)),
    Variant("no window", "a query sees all tokens before it", _windowed(lambda n: 1 << 30)),
    Variant(
        "sink ignored",
        "the sink takes no weight",
        lambda case: None if case.kind.sink is None else attention(case, sunk=False),
    ),
    *(
        Variant("epsilon in the normaliser", f"{e:g} is added to the sum of the weights", _with_epsilon(e))
        for e in (1e-12, 1e-10, 1e-8, 1e-6, 1e-5)
    ),
)
