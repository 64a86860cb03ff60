"""What a correct kernel should return: in float64 with a rigorous bound, in exact rationals, in balls."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.inputs.integers import VANISHES
from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.model.errors import RequestError
from verify.numbers import system

_U = 2.0**-53
# Bounds the absolute error of a product that underflows, twice over; sums are exact there.
_SMALLEST = 2.0**-1074


@dataclass(frozen=True, eq=False)
class Reference:
    """The exact result up to stated errors.

    Args:
        output: ``[B, T, HV, V]``.
        final_state: ``[B, HV, K, V]``.
        output_error: ``[B, T, HV]``, at least the 2-norm over V of the output's error.
        state_error: ``[B, HV]``, at least the Frobenius norm of the state's error.
    """

    output: Array
    final_state: Array
    output_error: Array
    state_error: Array


def float64_reference(case: Case) -> Reference:
    """The recurrence in float64 with a running bound of its error, over all sequences and heads at once.

    Let E bound ||S~ - S||_F for the computed and the exact state. The exact step maps S to A S + beta k v^T,
    A = (I - beta k k^T) Diag(alpha), and the computed one lands within `local` of that map at S~, so the next
    E is ||A||_2 E + local, with ||A||_2 <= max(alpha) max(1, |1 - beta ||k||^2|), which is at most 1 for unit
    keys and beta in [0, 2] (claim kda.transition-spectrum). With a~ = exp(g) computed, d = a~ S~, p = k^T d,
    e = v - p, w = beta e, c = k w and S~' = d + c, each rounded (relative error u of the *result*; dots
    gamma_K sum |k||d| for any order, Higham, Accuracy and Stability, eq. 3.5 and theorem 2.3):

        local <= max(1, |1 - beta ||k||^2|) || u|d| + (error of a~)|S~| ||_F
                 + ||k|| (beta (gamma_K || |k|^T|d| || + u||e||) + u||w||) + u||c||_F + u||S~'||_F.

    The output row adds ||scale q|| E + (gamma_K + 2u) || |scale q|^T |S~| ||. The error of exp is not assumed
    but enclosed, gate by gate, by balls. The bound itself is computed in float64: it is a sum of non-negative
    terms over at most K V + K + 64 roundings each, so multiplying by 1 + 2 (K V + K + 64) u rounds it up.
    Underflow adds one smallest subnormal per operation.

    Raises:
        RequestError: a gate is not a finite number.
    """
    s = case.shape
    k, q = (np.repeat(x, s.HV // s.H, axis=2) for x in (case.k, case.q * case.scale))
    alpha, alpha_error = enclosed_exp(case.g if case.mechanism == "kda" else case.g[..., None])
    gamma = s.K * _U / (1 - s.K * _U)
    up = 1 + 2 * (s.K * s.V + s.K + 64) * _U
    key_norm, query_norm = (np.linalg.norm(x, axis=-1) * up for x in (k, q))
    erased = case.beta * np.einsum("bthk,bthk->bth", k, k)
    stretch = np.maximum(1.0, np.abs(1 - erased) + (gamma + 8 * _U) * (1 + erased)) * up
    growth = stretch * (alpha + alpha_error).max(-1) * up
    underflow = 8 * (s.K + 1) * (s.V + 1) * _SMALLEST * (1 + key_norm) * (1 + case.beta) * stretch
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    error = np.zeros((s.B, s.HV))
    output, output_error = np.empty((s.B, s.T, s.HV, s.V)), np.empty((s.B, s.T, s.HV))
    for t in range(s.T):
        beta, key, key_abs = case.beta[:, t], k[:, t, :, None, :], np.abs(k[:, t, :, None, :])
        decayed = alpha[:, t, ..., None] * state
        read = (key @ decayed)[..., 0, :]
        miss = case.v[:, t] - read
        written = beta[..., None] * miss
        added = k[:, t, ..., None] * written[..., None, :]
        from_decay = _U * np.abs(decayed) + alpha_error[:, t, ..., None] * np.abs(state)
        from_read = gamma * _row_norm((key_abs @ np.abs(decayed))[..., 0, :])
        state = decayed + added
        local = stretch[:, t] * _norm(from_decay) + _U * (_norm(added) + _norm(state))
        local += key_norm[:, t] * (beta * (from_read + _U * _row_norm(miss)) + _U * _row_norm(written))
        error = (growth[:, t] * error + local + underflow[:, t]) * up
        query = q[:, t, :, None, :]
        output[:, t] = (query @ state)[..., 0, :]
        from_query = (gamma + 2 * _U) * _row_norm((np.abs(query) @ np.abs(state))[..., 0, :])
        smallest = (s.K + 1) * (s.V + 1) * _SMALLEST * (1 + _norm(state))
        output_error[:, t] = (query_norm[:, t] * error + from_query + smallest) * up
    return Reference(output, state, output_error, error)


def _row_norm(x: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("bhv,bhv->bh", x, x)))


def _norm(x: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("bhkv,bhkv->bh", x, x)))


def exact_reference(case: Case) -> Reference:
    """The definition in exact rationals, for gates that are 0, or so low that e^g is 0 in every format.

    A gate of at most -800 counts as a decay of 0: e^-800 < 10^-347 moves no integer to another value of any
    format. The errors returned are exactly 0.

    Raises:
        RequestError: another gate, or an exact result that float64 cannot hold.
    """
    gates = np.unique(case.g)
    if ((gates != 0) & (gates > VANISHES)).any():
        raise RequestError(
            f"case {case.name!r} has the gate {gates[gates > VANISHES][0]}; "
            f"exact rationals need gates of 0 or at most {VANISHES}"
        )
    numbers = system("exact")
    decay = (case.g == 0).astype(np.float64)
    output, state = _by_definition(case, numbers, decay)
    s = case.shape
    return Reference(
        _exactly(output, case), _exactly(state, case), np.zeros((s.B, s.T, s.HV)), np.zeros((s.B, s.HV))
    )


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
    s = case.shape
    output = np.empty((s.B, s.T, s.HV, s.V), dtype=object)
    final = np.empty((s.B, s.HV, s.K, s.V), dtype=object)

    def column(x: Array) -> Any:
        return numbers.matrix([[float(entry)] for entry in x])

    def gate(x: Array) -> Any:
        return numbers.number(float(x)) if x.ndim == 0 else column(x)

    for b, hv in heads if heads is not None else np.ndindex(s.B, s.HV):
        h = hv // (s.HV // s.H)
        gates = [gate(x) for x in (case.g if decay is None else decay)[b, :, hv]]
        start = np.zeros((s.K, s.V)) if case.initial_state is None else case.initial_state[b, hv]
        outputs, state = definition.recurrence(
            numbers,
            [column(x) for x in case.q[b, :, h]],
            [column(x) for x in case.k[b, :, h]],
            [column(x) for x in case.v[b, :, hv]],
            definition.decay(numbers, gates) if decay is None else gates,
            [numbers.number(float(x)) for x in case.beta[b, :, hv]],
            scale=numbers.number(case.scale),
            state=numbers.matrix([[float(x) for x in row] for row in start]),
        )
        for t, row in enumerate(outputs):
            output[b, t, hv] = [entry for (entry,) in numbers.to_lists(row)]
        final[b, hv] = numbers.to_lists(state)
    return output, final
