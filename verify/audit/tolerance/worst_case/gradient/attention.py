"""How far any rounding may take the gradients of softmax attention from the exact ones.

With p the weights, dp_ij = do_i . v_j and D_i = sum_j p_ij dp_ij = do_i . o_i:

    ds = p (dp - D),   dq = scale ds k,   dk = scale ds^T q,   dv = p^T do.

A kernel keeps its weights, or forms them again as e^(logit - L), L the logarithm of their sum; there L's own
rounding, of the size of L, joins the exponents. D is summed up from the weights, or from the output as it
was stored. The computed weights are those of `verify.audit.tolerance.worst_case.attention`, divided.
"""

import math

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.reference.attention import weights
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case import attention
from verify.audit.tolerance.worst_case.chunk_scores import EXP_ULPS, Rounding, rounding_of
from verify.audit.tolerance.worst_case.enclosed import UP, row_norms
from verify.audit.tolerance.worst_case.gradient.products import Near
from verify.numbers.formats import format_named


def bounds(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, Near]:
    """As `verify.audit.tolerance.worst_case.gradient.recurrent.bounds`."""
    s = case.shape
    fields = (*(case.spread(name) for name in ("q", "k", "v")), functional.output)
    q, k, v, d_output = (x.swapaxes(1, 2) for x in fields)
    scaled = q * case.scale
    # Above the products of three of them, and sums over all tokens.
    most = math.prod(1 + float(row_norms(x).max(initial=0.0)) for x in (scaled, k, v, d_output)) * (1 + s.T)
    rounding = rounding_of(case, algorithm, most)
    with np.errstate(over="ignore", invalid="ignore"):
        p, p_off = _weights(case, scaled, k, rounding, algorithm)
        weight = np.where(case.visible, d_output @ v.swapaxes(-1, -2), 0.0)
        sizes = np.abs(d_output) @ np.abs(v).swapaxes(-1, -2) * case.visible * UP
        weight_off = rounding.after(s.V + 1) * sizes + rounding.tiny * s.V * case.visible
        mean = (p * weight).sum(-1, keepdims=True)
        mean_off = _mean_off(p, p_off, weight, weight_off, v, d_output, rounding, algorithm)
        logit = p * (weight - mean)
        apart = np.abs(weight) + np.abs(mean) + 2 * (weight_off + mean_off)
        # Centred and multiplied, or multiplied and centred.
        logit_off = p_off * np.abs(weight - mean) + (np.abs(p) + 3 * p_off) * (weight_off + mean_off)
        logit_off = (logit_off + rounding.after(3) * (np.abs(p) + 2 * p_off) * apart) * case.visible * UP
        # Products in any order, of all heads that share a key, and up to six roundings of the scale's roots.
        terms = s.T * (s.HV // s.H)
        logit_off = logit_off + rounding.after(terms + 6) * (np.abs(logit) + 2 * logit_off)
        p_off = p_off + rounding.after(terms) * (np.abs(p) + 2 * p_off)
        flush = 4 * terms * rounding.tiny
        logit_off, p_off = (x + flush * case.visible for x in (logit_off, p_off))
        scale, across = abs(case.scale), (0, 1, 3, 2)
        parts = {
            "q": (case.scale * (logit @ k), scale * _times(logit_off, k) + flush * s.K**0.5),
            "k": (
                case.scale * (logit.transpose(across) @ q),
                scale * _times(logit_off.transpose(across), q) + flush * s.K**0.5,
            ),
            "v": (p.transpose(across) @ d_output, _times(p_off.transpose(across), d_output)),
        }
    return {name: Near(mid.swapaxes(1, 2), off.swapaxes(1, 2) * UP) for name, (mid, off) in parts.items()}


def _times(off: Array, rows: Array) -> Array:
    """Bounds of the lengths of sums of rows with factors that err by ``off``."""
    return np.asarray((off @ row_norms(rows)[..., None])[..., 0] * UP)


def _weights(case: Case, q: Array, k: Array, rounding: Rounding, algorithm: Algorithm) -> tuple[Array, Array]:
    """Our weights, and a bound of the distance of both ours and the kernel's from the exact ones."""
    s, seen = case.shape, case.visible
    p, own = weights(case)
    sizes = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * seen * UP
    logits = q @ k.swapaxes(-1, -2)
    apart, rest = attention.of_weights(case, logits, sizes, rounding, algorithm)
    below = ((apart.sum(-1) + rest) * UP)[..., None]
    # The logarithm of the sum, at most ln T above the largest logit; its distance from a logit.
    shift = np.where(seen, np.abs(logits), 0.0).max(-1, keepdims=True, initial=abs(case.kind.sink or 0.0))
    exponent = EXP_ULPS + 4 + 6 * (2 * shift + 2 * math.log(s.T + 1) + 2 * sizes)
    again = rounding.after(np.minimum(exponent, 1e300)) * seen
    relative = np.where(below < 1, (1 + again) / np.where(below < 1, 1 - below, np.nan), np.nan)
    upper = np.abs(p) + own
    off = own + apart * relative + upper * (relative - 1) + rounding.after(2) * (upper + apart * relative)
    return p, np.asarray((off + rounding.tiny) * seen * UP)


def _mean_off(
    p: Array,
    p_off: Array,
    weight: Array,
    weight_off: Array,
    v: Array,
    d_output: Array,
    rounding: Rounding,
    algorithm: Algorithm,
) -> Array:
    """What D errs by: as the sum of weights times their gradients, or of the stored output times its own."""
    tokens, values = p.shape[-1], v.shape[-1]
    size = np.abs(p) + 2 * p_off
    summed = (p_off * np.abs(weight) + (np.abs(p) + 3 * p_off) * weight_off).sum(-1, keepdims=True)
    inside = (size * (np.abs(weight) + 2 * weight_off)).sum(-1, keepdims=True)
    summed = summed + rounding.after(tokens) * inside
    given = row_norms(d_output)[..., None]
    output_off = _times(p_off + rounding.after(tokens + 2) * size, v)[..., None]
    output = row_norms(p @ v)[..., None] + 2 * output_off
    stored = format_named(algorithm.output_dtype)
    u = float(stored.unit_roundoff) + float(rounding.after(1))
    flushed = values * (float(stored.min_normal) + (tokens + values) * rounding.tiny)
    read = given * (output_off * (1 + u) + u * output + rounding.after(values) * output * (1 + u) + flushed)
    return np.asarray(np.maximum(summed + tokens * rounding.tiny, read) * UP)
