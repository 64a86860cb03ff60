"""The worst case of one input: how far any rounding may take a recurrent kernel from the exact result."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.mechanism import Mechanism
from verify.audit.reference.recurrence import Setting, frobenius, row_norm, steps
from verify.audit.reference.results import Reference
from verify.audit.tolerance.contract import Roundoff, Token, output_error, state_errors
from verify.audit.tolerance.prediction import Algorithm
from verify.numbers.formats import Format, format_named

# Above the rounding of the float64 norms it multiplies: fewer than 2^20 operations of 2^-53 each.
_UP = 1 + Fraction(1, 2**30)
_EXP_ULPS = 4
"""Units of u by which an exponential may err, beside 2 |g| u for one that is formed as 2^(g log2 e)."""
ASSUMPTIONS = (
    "every operation rounds to nearest in the compute dtype or better; subnormals may become 0",
    f"exponentials err by at most {_EXP_ULPS} + 2 |g| units of roundoff",
    "token by token: decay, read, subtract, multiply by beta, add; sums in any order",
)


@dataclass(frozen=True, eq=False)
class WorstCase:
    """Proved bounds of the deviation from the reference: ``[B, T, HV]`` 2-norms, ``[B, HV]`` Frobenius."""

    output: Array
    state: Array


def derived(mechanism: Mechanism, algorithm: Algorithm) -> bool:
    """Whether claim kernel.error-contract speaks of such a kernel."""
    return algorithm.form == "recurrent" and mechanism.erases


def worst_case(case: Case, reference: Reference, algorithm: Algorithm) -> WorstCase:
    """The bound of claim kernel.error-contract at the lengths that this input has, plus the reference's own.

    Infinite where errors may outgrow the state so far that underflow is no longer small beside it.
    """
    s, c = case.shape, Setting.of(case)
    tokens = list(steps(case, c))
    start = np.zeros((s.B, s.HV)) if case.initial_state is None else frobenius(case.initial_state)
    lengths = np.stack([start, *(frobenius(x.after) + x.after_error for x in tokens)], axis=1)
    values = np.stack([row_norm(case.v[:, t]) for t in range(s.T)], axis=1) if s.T else lengths[:, :0]
    decays = (c.alpha + c.alpha_error).max(-1)
    queries = np.linalg.norm(c.q, axis=-1)
    output, state = np.empty((s.B, s.T, s.HV)), np.empty((s.B, s.HV))
    for b, h in np.ndindex(s.B, s.HV):
        rows = [
            Token(*(_up(x[b, t, h]) for x in (decays, c.key_norm, c.strength, values, lengths)))
            for t in range(s.T)
        ]
        after = [_up(x) for x in lengths[b, :, h]]
        output[b, :, h], state[b, h] = _one(
            case, algorithm, _roundoff(case, algorithm, b, h, max(after)), rows, after, queries[b, :, h]
        )
    return WorstCase(output + reference.output_error, state + reference.state_error)


def _roundoff(case: Case, algorithm: Algorithm, b: int, h: int, largest: Fraction) -> Roundoff:
    """Of one head. A decay that underflows errs by a tiny number times the state's entries."""
    compute = format_named(algorithm.compute_dtype)
    decay = Fraction(0)
    if case.g is not None:
        gates = np.abs(case.g[b, :, h])
        vanished = float(-np.log(float(compute.min_normal)))
        steepest = float(np.max(np.minimum(gates, vanished), initial=0.0))
        decay = (_EXP_ULPS + 2 * Fraction(steepest)) * compute.unit_roundoff
    roundoff = Roundoff.nearest(compute, output=_stored(algorithm.output_dtype, compute), decay_error=decay)
    tiny = roundoff.tiny / compute.unit_roundoff * 4 * (1 + largest)
    return Roundoff(roundoff.operation, roundoff.decay, roundoff.state, roundoff.output, tiny)


def _one(
    case: Case,
    algorithm: Algorithm,
    roundoff: Roundoff,
    rows: list[Token],
    after: list[Fraction],
    queries: Array,
) -> tuple[list[float], float]:
    """Bounds of one head's outputs and of its final state."""
    keys, values = case.shape.K, case.shape.V
    errors = state_errors(roundoff, keys, values, rows)
    if max(errors) > max(after) + 1:
        return [float("inf")] * len(rows), float("inf")
    u, room = roundoff.operation, roundoff.room(keys, values)
    outputs = []
    for query, length, error in zip(map(_up, queries), after[1:], errors[1:], strict=True):
        # The scale, its rounding, and their product with the query or with the output.
        scaled = 4 * u * query + roundoff.tiny * keys
        total = output_error(roundoff, keys, values, query + scaled, length, error)
        outputs.append(float((total + scaled * (length + error) + room) * _UP))
    stored = _stored(algorithm.state_dtype, format_named(algorithm.compute_dtype))
    kept = stored.unit_roundoff * (after[-1] + errors[-1]) + room if stored else Fraction(0)
    return outputs, float((errors[-1] + kept) * _UP)


def _stored(name: str, compute: Format) -> Format | None:
    """The format something is stored in, where that rounds again."""
    stored = format_named(name)
    return stored if stored.precision < compute.precision else None


def _up(x: float) -> Fraction:
    return Fraction(float(x)) * _UP
