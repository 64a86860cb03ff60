"""The worst case of one input: how far any rounding may take a kernel of a known form from the result."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.mechanism import Mechanism
from verify.audit.reference.recurrence import Setting, frobenius, row_norm, steps
from verify.audit.reference.results import Reference
from verify.audit.tolerance import attention, chunked, unerased
from verify.audit.tolerance.chunk_scores import EXP_ULPS
from verify.audit.tolerance.contract import Roundoff, Token, output_error, state_errors
from verify.audit.tolerance.enclosed import UP, row_norms
from verify.audit.tolerance.prediction import Algorithm
from verify.numbers.formats import Format, format_named

# Above the rounding of the float64 norms it multiplies: fewer than 2^20 operations of 2^-53 each.
_UP = 1 + Fraction(1, 2**30)
_ROUNDING = (
    "every operation rounds to nearest in the format of the model or better; subnormals may become 0; nothing"
    " overflows"
)
_EXPONENTIALS = f"exponentials err by at most {EXP_ULPS} + 2 |g| units of roundoff"
_CHUNKS = (
    "a decay between two tokens is formed from the sum of its gates, in any order, and at most"
    " 1 + log2(chunk) exponentials of parts of it, or from two running sums where those are declared",
    "chunk by chunk: reads, scores, writes and the state are matrix products, summed in any order",
)
_SOLVES = (
    "the triangular system is solved by substitution, or inverted by substitution row by row or in diagonal"
    " blocks of 16 rows and more that are merged by products; not by doubling"
)


@dataclass(frozen=True)
class Derivation:
    """Why nothing takes a correct kernel of a form further, in a certificate's words."""

    about: str
    assumptions: tuple[str, ...]


_CONTRACT = Derivation(
    "claim kernel.error-contract: no rounding takes a correct kernel of this form further",
    (
        _ROUNDING,
        _EXPONENTIALS,
        "token by token: decay, read, subtract, multiply by beta, add; sums in any order",
    ),
)
_CHUNKED_RULE = Derivation(
    "errors travel between chunks by kda.transition-spectrum, within one by the backward error of the"
    " triangular solve: no rounding takes a correct kernel of this form further",
    (_ROUNDING, _EXPONENTIALS, *_CHUNKS, _SOLVES),
)
_CHUNKED_SUM = Derivation(
    "nothing is solved and decays are at most 1: no rounding takes a correct kernel of this form further",
    (_ROUNDING, _EXPONENTIALS, *_CHUNKS),
)
_TOKENS = Derivation(
    _CHUNKED_SUM.about, (_ROUNDING, _EXPONENTIALS, "token by token: decay, add, read; sums in any order")
)
_SOFTMAX = Derivation(
    "weights relative to the largest logit: no rounding takes a correct kernel of this form further",
    (
        _ROUNDING,
        _EXPONENTIALS,
        "the largest logit so far is subtracted before the exponential; sums in any order",
    ),
)


_NORMALISED = Derivation(
    "numerator and denominator over the exact sum: no rounding takes a correct kernel of this form further",
    (_ROUNDING, "both are sums of products of queries, keys and values, in any order, then divided"),
)


@dataclass(frozen=True, eq=False)
class WorstCase:
    """Proved bounds of the deviation from the reference: ``[B, T, HV]`` 2-norms, ``[B, HV]`` Frobenius.

    Infinite where nothing finite can be said.
    """

    output: Array
    state: Array


def derivation(mechanism: Mechanism, algorithm: Algorithm) -> Derivation | None:
    """What bounds such a kernel; None where nothing does."""
    if mechanism.directed or algorithm.prepares:
        return None
    if algorithm.inverse != "substitution" or algorithm.products or algorithm.accumulate != "nearest":
        return None
    if not mechanism.stateful:
        return _NORMALISED if mechanism.weights == "linear" else _SOFTMAX
    if algorithm.form == "recurrent":
        return _CONTRACT if mechanism.erases else _TOKENS
    if algorithm.form != "chunked":
        return None
    return _CHUNKED_RULE if mechanism.erases else _CHUNKED_SUM


def derived(mechanism: Mechanism, algorithm: Algorithm) -> bool:
    """Whether there is a worst case for such a kernel."""
    return derivation(mechanism, algorithm) is not None


def worst_case(case: Case, reference: Reference, algorithm: Algorithm) -> WorstCase:
    """The bound of `derivation` for this input, storing and the reference's own error included."""
    found = derivation(case.kind, algorithm)
    if found is None or found is _CONTRACT:
        return _by_contract(case, reference, algorithm)
    if found in (_SOFTMAX, _NORMALISED):
        output, state = attention.bounds(case, reference, algorithm)
    else:
        output, state = (unerased if found is _TOKENS else chunked).bounds(case, algorithm)
    errors = reference.output_error, reference.state_error
    sizes = (
        row_norms(reference.output) + errors[0],
        np.sqrt(np.square(reference.final_state).sum((-1, -2))) + errors[1],
    )
    names = algorithm.output_dtype, algorithm.state_dtype
    model, compute = format_named(algorithm.model_dtype), format_named(algorithm.compute_dtype)
    parts = []
    with np.errstate(invalid="ignore", over="ignore"):
        for off, own, size, name in zip((output, state), errors, sizes, names, strict=True):
            u = float(format_named(name).unit_roundoff) * (_stored(name, model) is not None)
            entries = case.shape.V * case.shape.K
            flushed = entries * float(max(format_named(name).min_normal, compute.min_normal))
            parts.append(_finite((off * (1 + u) + u * size + own + flushed) * UP))
    return WorstCase(*parts)


def _finite(x: Array) -> Array:
    """Infinity where the bound is not a number."""
    return np.where(np.isnan(x), np.inf, x)


def _by_contract(case: Case, reference: Reference, algorithm: Algorithm) -> WorstCase:
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
        decay = (EXP_ULPS + 2 * Fraction(steepest)) * compute.unit_roundoff
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
