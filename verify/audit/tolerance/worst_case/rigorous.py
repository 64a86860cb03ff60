"""The worst case of one input: how far any rounding may take a kernel of a known form from the result."""

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.mechanism import Mechanism
from verify.audit.reference.recurrence import Setting, frobenius, row_norm, steps
from verify.audit.reference.results import Reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case import attention, chunked, unerased
from verify.audit.tolerance.worst_case.chunk_scores import EXP_ULPS, rounding_of
from verify.audit.tolerance.worst_case.contract import Roundoff, Token, output_error, state_errors
from verify.audit.tolerance.worst_case.directed import chunked as directed_chunked
from verify.audit.tolerance.worst_case.directed import recurrent as directed_recurrent
from verify.audit.tolerance.worst_case.enclosed import UP, row_norms
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
_CHUNKED_DOUBLED = Derivation(
    "errors travel between chunks by kda.transition-spectrum, within one by what the powers of the matrix"
    " that is inverted round by: no rounding takes a correct kernel of this form further",
    (
        _ROUNDING,
        _EXPONENTIALS,
        *_CHUNKS,
        "the triangular system is inverted by doubling, (I - L)(I + L^2)(I + L^4)..., multiplied from the"
        " left or from the right",
    ),
)
_CHUNKED_SUM = Derivation(
    "nothing is solved and decays are at most 1: no rounding takes a correct kernel of this form further",
    (_ROUNDING, _EXPONENTIALS, *_CHUNKS),
)
_TOKENS = Derivation(
    _CHUNKED_SUM.about, (_ROUNDING, _EXPONENTIALS, "token by token: decay, add, read; sums in any order")
)
_CARRIED = (
    "errors travel by the transitions themselves, computed from the input, which need not contract: no"
    " rounding takes a correct kernel of this form further"
)
_DIRECTED = Derivation(
    _CARRIED,
    (
        _ROUNDING,
        _EXPONENTIALS,
        "token by token: decay, read the state before it or after, add; sums in any order",
    ),
)
_DIRECTED_CHUNKS = Derivation(
    _CARRIED,
    (
        _ROUNDING,
        _EXPONENTIALS,
        *_CHUNKS,
        _SOLVES,
        "GDN-2 subtracts what tokens read from their values before the inverse, and writes both at once; DPLR"
        " adds to it what they read of values",
    ),
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
    if algorithm.prepares:
        return None
    if algorithm.accumulate != "nearest" and algorithm.factors is None:
        return None
    if algorithm.factors is not None:
        plain = derivation(mechanism, dataclasses.replace(algorithm, products="", accumulate="nearest"))
        return None if plain is None or mechanism.directed else _on_short_factors(plain, algorithm)
    if not mechanism.stateful:
        return _NORMALISED if mechanism.weights == "linear" else _SOFTMAX
    if algorithm.inverse == "doubling":
        return None if mechanism.directed else _CHUNKED_DOUBLED
    if mechanism.directed:
        return {"recurrent": _DIRECTED, "chunked": _DIRECTED_CHUNKS}.get(algorithm.form)
    if algorithm.form == "recurrent":
        return _CONTRACT if mechanism.erases else _TOKENS
    if algorithm.form != "chunked":
        return None
    return _CHUNKED_RULE if mechanism.erases else _CHUNKED_SUM


def _on_short_factors(plain: Derivation, algorithm: Algorithm) -> Derivation:
    """The same of matrix products whose factors are rounded and whose sums tensor cores may form."""
    added = f"both factors of matrix products are rounded to {algorithm.products}, whose subnormals are kept"
    if algorithm.accumulate != "nearest":
        added += (
            "; sums of products are chained in float32 by the published model of"
            f" {algorithm.accumulate} tensor cores, each step full but the last of a tile (claim"
            " kernel.tensor-core-sum)"
        )
    return Derivation(plain.about, (*plain.assumptions, added))


def derived(mechanism: Mechanism, algorithm: Algorithm) -> bool:
    """Whether there is a worst case for such a kernel."""
    return derivation(mechanism, algorithm) is not None


def worst_case(case: Case, reference: Reference, algorithm: Algorithm) -> WorstCase:
    """The bound of `derivation` for this input, storing and the reference's own error included."""
    if case.kind.stateful and case.kind.erases and not case.kind.directed and algorithm.form == "recurrent":
        return _by_contract(case, reference, algorithm)
    output, state = _before_storing(case, reference, algorithm)
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


def _before_storing(case: Case, reference: Reference, algorithm: Algorithm) -> tuple[Array, Array]:
    """The distance of the output's rows ``[B, T, HV]`` and of the state ``[B, HV]`` from the exact ones."""
    if not case.kind.stateful:
        return attention.bounds(case, reference, algorithm)
    if algorithm.form == "recurrent":
        found = directed_recurrent.bounds if case.kind.directed else unerased.bounds
    else:
        found = directed_chunked.bounds if case.kind.directed else chunked.bounds
    return found(case, algorithm)


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
    operation, depth, tiny = compute.unit_roundoff, None, roundoff.tiny
    if algorithm.factors is not None:
        # As many roundings as err by as much as short factors and tensor cores, of k v^T too: a few dozen
        # larger ones, so that their power is short.
        products = rounding_of(case, algorithm, 1.0)
        tiny = max(tiny, Fraction(products.tiny))
        loss = Fraction(float(products.loss(case.shape.K) + products.loss(1))) * _UP
        operation *= 2 ** max(0, math.floor(math.log2(loss / operation)) - 5)
        depth = math.ceil(loss / operation * (1 + operation))
    tiny = tiny / compute.unit_roundoff * 4 * (1 + largest)
    return Roundoff(operation, roundoff.decay, roundoff.state, roundoff.output, tiny, depth)


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
