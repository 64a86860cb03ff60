"""What a correct kernel should return: in float64 with a rigorous bound, in exact rationals, in balls."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.inputs.counted import VANISHES, attended
from verify.audit.reference import attention, recurrence
from verify.model.errors import RequestError
from verify.numbers import system


@dataclass(frozen=True, eq=False)
class Reference:
    """The exact result up to stated errors.

    Args:
        output: ``[B, T, HV, V]``.
        final_state: ``[B, HV, K, V]``; ``[B, HV, 0, 0]`` for a mechanism without a state.
        output_error: ``[B, T, HV]``, at least the 2-norm over V of the output's error.
        state_error: ``[B, HV]``, at least the Frobenius norm of the state's error.
    """

    output: Array
    final_state: Array
    output_error: Array
    state_error: Array


def float64_reference(case: Case) -> Reference:
    """The definition in float64, with a rigorous bound of its error.

    Raises:
        RequestError: a gate is not a finite number.
    """
    parts = recurrence.float64(case) if case.kind.stateful else attention.float64(case)
    return Reference(*parts)


def exact_reference(case: Case) -> Reference:
    """The definition in exact rationals, where every exponential is 1, or 0 in every format.

    A gate of at most -800 counts as a decay of 0: e^-800 < 10^-347 moves no integer to another value of any
    format. The errors returned are exactly 0.

    Raises:
        RequestError: another gate, or an exact result that float64 cannot hold.
    """
    s = case.shape
    nothing = np.zeros((s.B, s.T, s.HV)), np.zeros((s.B, s.HV))
    if not case.kind.stateful:
        return Reference(_averages(case), np.zeros((s.B, s.HV, 0, 0)), *nothing)
    gates = np.unique(case.log_decay)
    if ((gates != 0) & (gates > VANISHES)).any():
        raise RequestError(
            f"case {case.name!r} has the gate {gates[gates > VANISHES][0]}; "
            f"exact rationals need gates of 0 or at most {VANISHES}"
        )
    numbers = system("exact")
    decay = None if case.g is None else (case.g == 0).astype(np.float64)
    output, state = _by_definition(case, numbers, decay)
    return Reference(_exactly(output, case), _exactly(state, case), *nothing)


def _averages(case: Case) -> Array:
    """Softmax attention whose weights are 0 or equal: sums of values, divided by their number."""
    members = attended(case)
    counts = members.sum(-1)
    sums = np.einsum("bhtj,bjhv->bthv", members.astype(np.float64), case.spread("v"))
    exact = np.empty(sums.shape, dtype=object)
    for index, total in np.ndenumerate(sums):
        b, t, h, _ = index
        exact[index] = system("exact").number(float(total)) / int(counts[b, h, t])
    return _exactly(exact, case)


def _exactly(values: NDArray[Any], case: Case) -> Array:
    """Rationals as float64, when that loses nothing."""
    flat = np.empty(values.size)
    for i, x in enumerate(values.flat):
        flat[i] = int(x.p) / int(x.q)
        if x != system("exact").number(float(flat[i])):
            raise RequestError(f"case {case.name!r}: the exact result {x} is not a value of float64")
    return flat.reshape(values.shape)


def ball_reference(
    case: Case, precision: int = 128, heads: list[tuple[int, int]] | None = None
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Balls that contain the exact output [B, T, HV, V] and final state [B, HV, K, V], from the definition.

    ``heads`` lists the (sequence, value head) pairs to compute; the others stay None. Default: all.
    """
    numbers = system("ball", precision=precision)
    return _by_definition(case, numbers, None, heads)


def _by_definition(
    case: Case, numbers: Any, decay: Array | None, heads: list[tuple[int, int]] | None = None
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """The mechanism's definition head by head; decay [B, T, HV(, K)] replaces e^g where e^g has no value."""
    definition = mechanism.definition(case.mechanism)
    s, kind = case.shape, case.kind
    output = np.empty((s.B, s.T, s.HV, s.V), dtype=object)
    final = np.empty((s.B, s.HV, *((s.K, s.V) if kind.stateful else (0, 0))), dtype=object)

    def column(x: Array) -> Any:
        return numbers.matrix([[float(entry)] for entry in x])

    def gate(x: Array) -> Any:
        return numbers.number(float(x)) if x.ndim == 0 else column(x)

    for b, hv in heads if heads is not None else np.ndindex(s.B, s.HV):
        tokens: list[Any] = [[column(x) for x in case.spread(name)[b, :, hv]] for name in ("q", "k", "v")]
        if case.g is not None:
            gates = [gate(x) for x in (case.g if decay is None else decay)[b, :, hv]]
            tokens.append(definition.decay(numbers, gates) if decay is None else gates)
        if case.beta is not None:
            tokens.append([numbers.number(float(x)) for x in case.beta[b, :, hv]])
        scale = numbers.number(case.scale)
        if kind.stateful:
            start = np.zeros((s.K, s.V)) if case.initial_state is None else case.initial_state[b, hv]
            state = numbers.matrix([[float(x) for x in row] for row in start])
            outputs, state = definition.recurrence(numbers, *tokens, scale=scale, state=state)
            final[b, hv] = numbers.to_lists(state)
        else:
            outputs = definition.causal(numbers, *tokens, scale=scale)
        for t, row in enumerate(outputs):
            output[b, t, hv] = [entry for (entry,) in numbers.to_lists(row)]
    return output, final
