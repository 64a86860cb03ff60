"""Simpler numbers in place of a case's: powers of two, small integers, few significant bits."""

from collections.abc import Callable, Iterator

import numpy as np

from verify.audit.case import Array, Case

_LARGEST_INTEGER = 8.0


def powers_of_two(x: Array) -> Array:
    """Every entry to the nearest power of two of its sign, in the exponent; 0 stays."""
    with np.errstate(divide="ignore"):
        exponent = np.where(x == 0, 0.0, np.rint(np.log2(np.abs(x))))
    return np.asarray(np.sign(x) * np.exp2(exponent))


def integers(x: Array) -> Array:
    """Every entry to the nearest integer; entries that are all below 1/2 or large stay."""
    size = np.abs(x).max(initial=0.0)
    return np.asarray(np.rint(x)) if 0.5 < size <= _LARGEST_INTEGER else x


def short(x: Array) -> Array:
    """Four significant bits."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(mantissa * 16) / 16, exponent))


def one_hot(x: Array) -> Array:
    """Each row's largest entry as +-1, the others 0."""
    largest = np.abs(x).argmax(axis=-1, keepdims=True)
    return np.asarray(np.where(np.arange(x.shape[-1]) == largest, np.sign(x), 0.0))


def simpler(case: Case) -> Iterator[Case]:
    """Cases with simpler numbers, the simplest first; any of them may be the case itself.

    Strengths stay where they are allowed: powers of two and integers are taken only where they do not grow.
    """
    if case.initial_state is not None:
        yield case.replace(initial_state=None)
    for field, value in (("g", 0.0), ("g", -1.0), ("beta", 1.0), ("v", 1.0)):
        array = case.arrays().get(field)
        # Gates that are -1 already were needed: 0 would be taken back to -1 for ever.
        if array is not None and not (field == "g" and np.isin(array, (0.0, -1.0)).all() and value):
            yield case.replace(**{field: np.full_like(array, value)})
    if not case.kind.directed:
        yield case.replace(k=one_hot(case.k), q=one_hot(case.q))
    yield case.replace(q=one_hot(case.q))
    for change in (integers, powers_of_two, short):
        yield from (_with(case, change, field) for field in case.arrays())


def _with(case: Case, change: Callable[[Array], Array], field: str) -> Case:
    """One field changed; keys, directions and strengths only where that does not lengthen them."""
    array = case.arrays()[field]
    changed = change(array)
    if field not in ("q", "v", "initial_state") and np.linalg.norm(changed) > np.linalg.norm(array):
        return case
    return case.replace(**{field: changed})


def _all(change: Callable[[Array], Array]) -> Callable[[Case], Case]:
    def run(case: Case) -> Case:
        for field in case.arrays():
            case = _with(case, change, field)
        return case

    return run


SIMPLER = (_all(powers_of_two), _all(short))
"""The same for all fields at once."""
