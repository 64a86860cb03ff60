"""The mechanisms' definitions, evaluated in any number system, head by head."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.mechanism import Mechanism

Heads = list[tuple[int, int]]
"""Pairs (sequence, output head)."""
Exponentials = Callable[[Any, list[Any]], list[Any]]
"""From log decays in a number system, scalars or columns, to decays."""


def evaluate(
    case: Case, numbers: Any, heads: Heads | None = None, vanishing: float = -np.inf
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Output ``[B, T, HV, V]`` and final state ``[B, HV, K, V]`` in the scalars of a number system.

    Args:
        case: the input.
        numbers: one of `verify.numbers`.
        heads: those to compute; the others stay None. Default: all.
        vanishing: log decays up to this one are decays of 0.
    """
    definition = mechanism.definition(case.mechanism)
    s, kind = case.shape, case.kind
    output = np.empty((s.B, s.T, s.HV, s.V), dtype=object)
    final = np.empty((s.B, s.HV, *((s.K, s.V) if kind.stateful else (0, 0))), dtype=object)
    for b, hv in heads if heads is not None else np.ndindex(s.B, s.HV):
        tokens = [
            decays(numbers, definition.decay, case.spread(field)[b, :, hv], vanishing)
            if field == "g"
            else [_entry(numbers, x) for x in case.spread(field)[b, :, hv]]
            for field in kind.tokens
        ]
        scale = numbers.number(case.scale)
        if kind.stateful:
            start = np.zeros((s.K, s.V)) if case.initial_state is None else case.initial_state[b, hv]
            state = numbers.matrix([[float(x) for x in row] for row in start])
            outputs, state = definition.recurrence(numbers, *tokens, scale=scale, state=state)
            final[b, hv] = numbers.to_lists(state)
        else:
            outputs = definition.causal(numbers, *tokens, scale=scale, **visibility(numbers, kind))
        for t, row in enumerate(outputs):
            output[b, t, hv] = [entry for (entry,) in numbers.to_lists(row)]
    return output, final


def visibility(numbers: Any, kind: Mechanism) -> dict[str, Any]:
    """What attention sees besides the tokens so far, where that is not all of them and nothing else."""
    found: dict[str, Any] = {} if kind.window is None else {"window": kind.window}
    return found if kind.sink is None else found | {"sink": numbers.number(kind.sink)}


def _entry(numbers: Any, x: Array) -> Any:
    """A scalar, or a column."""
    return numbers.number(float(x)) if x.ndim == 0 else numbers.matrix([[float(entry)] for entry in x])


def decays(numbers: Any, exponentials: Exponentials, gates: Array, vanishing: float = -np.inf) -> list[Any]:
    """One decay per token, by the definition's exponentials, but 0 where the gate vanishes."""
    gone = gates <= vanishing
    found = exponentials(numbers, [_entry(numbers, x) for x in np.where(gone, 0.0, gates)])
    for t in np.flatnonzero(gone.reshape(len(gates), -1).any(-1)):
        kept = _entry(numbers, 1.0 - gone[t])
        found[t] = kept if gates.ndim == 1 else numbers.scale_rows(kept, found[t])
    return found
