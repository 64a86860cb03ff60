"""The worst case of gradients: how far any rounding may take those of a kernel of a known form."""

from collections.abc import Callable

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent, gathered, norm, row_axes
from verify.audit.gradient.reference import Gradients
from verify.audit.mechanism import Mechanism
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case import rigorous
from verify.audit.tolerance.worst_case.enclosed import UP
from verify.audit.tolerance.worst_case.gradient import attention as gradient_attention
from verify.audit.tolerance.worst_case.gradient import chunked as gradient_chunked
from verify.audit.tolerance.worst_case.gradient import recurrent as gradient_recurrent
from verify.audit.tolerance.worst_case.gradient.products import Near
from verify.audit.tolerance.worst_case.rigorous import Derivation
from verify.numbers.formats import Format, format_named

Bounds = Callable[[Case, Cotangent, Algorithm], dict[str, Near]]
_STORING = "a gradient is stored once in its input's format, once for every head that shares the input"
_TOKENS = (
    "errors of the state and of its gradient travel between tokens by the steps and their transposes: no"
    " rounding takes the gradients of a correct kernel of this form further",
    (
        "backward token by token from the states of the forward pass, by the transposes of the same"
        " operations; sums in any order",
        "the gradient of a gate is made of the decayed state and its gradient, not of other gradients",
        _STORING,
    ),
)
_CHUNKS = (
    "backward chunk by chunk from the states between chunks: gradients of scores, of what is read, written"
    " and carried are matrix products, summed in any order",
    "the gradient of a gate is the sum of those of the exponents it is part of, or suffix sums of q dq - k dk"
    " where running sums are declared; sums over rows, then over columns",
    _STORING,
)
_CHUNKED_SUM = (
    "errors of the states and of their gradients travel between chunks by decays of at most 1: no rounding"
    " takes the gradients of a correct kernel of this form further",
    _CHUNKS,
)
_CHUNKED_RULE = (
    "errors of the states and of their gradients travel between chunks by kda.transition-spectrum, within one"
    " by the backward error of the triangular solve and of its transpose: no rounding takes the gradients of"
    " a correct kernel of this form further",
    (
        "what is missed and its gradient are one solve with the triangular system and one with its transpose,"
        " or products with the inverse, of the right-hand side or of its factors",
        *_CHUNKS,
    ),
)
_SOFTMAX = (
    "weights kept, or formed again from the logarithm of their sum: no rounding takes the gradients of a"
    " correct kernel of this form further",
    (
        "dp = do v, ds = p (dp - sum p dp), the sum from the weights or from do and the stored output; sums"
        " in any order",
        _STORING,
    ),
)


def derivation(mechanism: Mechanism, algorithm: Algorithm) -> Derivation | None:
    """What bounds the gradients of such a kernel; None where nothing does."""
    forward, about = rigorous.derivation(mechanism, algorithm), _about(mechanism, algorithm)
    if forward is None or about is None:
        return None
    return Derivation(about[0], (*forward.assumptions, *about[1]))


def _about(mechanism: Mechanism, algorithm: Algorithm) -> tuple[str, tuple[str, ...]] | None:
    if algorithm.prepares or algorithm.products or algorithm.accumulate != "nearest":
        return None
    if mechanism.weights == "softmax":
        return _SOFTMAX
    if mechanism.directed or not mechanism.stateful:
        return None
    if algorithm.form == "recurrent":
        return _TOKENS if algorithm.gate_sums == "segment" else None
    if algorithm.form != "chunked" or algorithm.inverse != "substitution":
        return None
    if mechanism.erases:
        return _CHUNKED_RULE if algorithm.corrections == "solved" else None
    return _CHUNKED_SUM


def worst_gradients(
    case: Case, functional: Cotangent, gradients: Gradients, algorithm: Algorithm
) -> dict[str, Array] | None:
    """By input field the proved bounds of the deviation from ``gradients``, in the norms of `row_axes`.

    Storing, the sum over the heads that share an input and the reference's own error are included. Infinite
    where nothing finite can be said; None where nothing is derived.
    """
    if derivation(case.kind, algorithm) is None:
        return None
    rooms = {"recurrent": gradient_recurrent, "chunked": gradient_chunked, "tiled": gradient_attention}
    near = rooms[algorithm.form].bounds(case, functional, algorithm)
    with np.errstate(invalid="ignore", over="ignore"):
        found = {
            field: _stored(case, field, x, algorithm) + gradients.errors[field] for field, x in near.items()
        }
    return {field: np.where(np.isnan(x), np.inf, x * UP) for field, x in found.items()}


def _stored(case: Case, field: str, x: Near, algorithm: Algorithm) -> Array:
    """The bound of what comes back in the input's format, of all heads that share the input together."""
    compute, target = format_named(algorithm.model_dtype), format_named(case.dtype_of(field))
    axes = row_axes(case, field)
    entries = float(np.prod([x.mid.shape[axis] for axis in axes], initial=1.0))
    off = np.expand_dims(x.off, axes)
    sizes = np.abs(x.mid) + 2 * off
    group = case.shape.HV // case.shape.H if field in case.kind.shared else 1
    least = float(max(target.min_normal, compute.min_normal))
    if group == 1:
        narrow = target.precision < compute.precision
        return np.asarray(
            (x.off + narrow * norm(case, field, _half_ulp(sizes, target)) + entries * least) * UP
        )
    # Every head's part is stored once, and then added to the others, in the format of either.
    u = float(max(target.unit_roundoff, compute.unit_roundoff))
    rounded = np.expm1(group * u / (1 - u) * UP) * norm(case, field, sizes)
    return gathered(case, field, (x.off + rounded + group * entries * least) * UP)


def _half_ulp(sizes: Array, target: Format) -> Array:
    """The largest error of rounding numbers of at most these sizes to nearest; subnormals aside."""
    return np.asarray(np.ldexp(float(target.unit_roundoff), np.frexp(sizes)[1] - 1))
