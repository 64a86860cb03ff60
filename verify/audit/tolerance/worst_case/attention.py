"""How far any rounding may take attention from the exact result, tile by tile or all at once.

Softmax. A logit is the product of K terms and the scale, in any order. The weight of a key is the exponential
of its logit less the largest so far, times one exponential for every later tile whose largest is larger: the
exponents add up to the distance d of the computed logit from the computed largest, whatever the tiles, and a
common shift cancels between numerator and denominator. So a computed weight is the exact one times e^x,

    |x| <= eta_j + 3 u d_j + (EXP_ULPS + 2) u tiles,      eta_j what the logit errs by,

and both sums round T + 2 tiles times in any order. A sink is one more weight, without a value.

Normalised linear attention. Numerator and denominator are sums of T K terms q_c k_jc (times v_j), in any
order: token by token, by chunks, or by pairs.

With o = N / D, ||o~ - o|| is at most (dN + ||o|| dD) / (D - dD), and the rounding of the division.
"""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.attention import weights
from verify.audit.reference.recurrence import U
from verify.audit.reference.results import Reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import EXP_ULPS, Rounding, rounding_of
from verify.audit.tolerance.worst_case.enclosed import UP, row_norms


def bounds(case: Case, reference: Reference, algorithm: Algorithm) -> tuple[Array, Array]:
    """The distance of the output's rows ``[B, T, HV]`` from the exact ones, before storing; no state."""
    s, kind = case.shape, case.kind
    q, k, v = (case.spread(name).swapaxes(1, 2) for name in ("q", "k", "v"))
    q = q * case.scale
    sizes = np.abs(q) @ np.abs(k).swapaxes(-1, -2) * case.visible * UP
    rounding = rounding_of(case, algorithm, max(float(np.abs(x).max(initial=1.0)) for x in (q, k, v, sizes)))
    products = q @ k.swapaxes(-1, -2)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind.weights == "softmax":
            apart, rest = of_weights(case, products, sizes, rounding, algorithm)
            total = np.ones(apart.shape[:-1])
        else:
            apart, rest = _of_products(case, sizes, rounding, algorithm), np.zeros(1)
            total = np.abs((products * case.visible).sum(-1)) - (s.T + s.K + 4) * U * sizes.sum(-1)
        below = (apart.sum(-1) + rest) * UP
        above = (apart @ row_norms(v)[..., None])[..., 0] * UP
        size = row_norms(reference.output.swapaxes(1, 2)) + reference.output_error.swapaxes(1, 2)
        bound = (above + size * below) / np.where(below < total, total - below, np.nan)
    own = rounding.after(2) * (size + bound) + s.V**0.5 * (s.T + 2) * rounding.tiny
    return np.asarray((bound + own) * UP).swapaxes(1, 2), np.zeros((s.B, s.HV))


def of_weights(
    case: Case, logits: Array, sizes: Array, rounding: Rounding, algorithm: Algorithm
) -> tuple[Array, Array]:
    """What the terms of both sums err by, relative to the whole, and what the sink's does."""
    s, seen = case.shape, case.visible
    shares, error = (np.abs(x) for x in weights(case))
    # The scale, log2 e and K roundings of the product; the largest logit errs likewise.
    eta = (rounding.summed(s.K, others=4) * sizes + 4 * s.K * rounding.tiny * seen) * UP
    highest = np.where(seen, logits, -np.inf).max(-1, keepdims=True, initial=-np.inf)
    most = eta.max(-1, keepdims=True, initial=0.0)
    sink = case.kind.sink
    if sink is not None:
        highest, most = np.maximum(highest, sink), most + rounding.after(4) * abs(sink)
    tiles = 1 + -(-s.T // (algorithm.chunk_size or max(s.T, 1)))
    flushed = 4 * tiles * rounding.tiny
    # Of the weights times the values, and of the weights alone.
    sums = max(s.T * rounding.log, float(rounding.loss(rounding.parted(s.T, tiles))))

    def grown(logit: Array, off: Array) -> Array:
        # Beyond the second distance a weight underflows in either case, which is `flushed`.
        distance = np.minimum(np.maximum(highest - logit, 0.0) + 2 * most, 2 * rounding.vanished + 4 * most)
        steps = 3 * distance + (EXP_ULPS + 2) * tiles + 2 * tiles
        return np.asarray(np.expm1((steps * rounding.log + sums + off) * UP) * UP)

    apart = (grown(logits, eta) * (shares + error) + flushed) * seen
    if sink is None:
        return apart, np.zeros(1)
    share = np.clip(1 - (shares - error).sum(-1), 0.0, 1.0) * UP
    own = grown(np.full((1, 1, 1, 1), sink), rounding.after(4) * abs(sink))[..., 0]
    return apart, own * share + flushed


def _of_products(case: Case, sizes: Array, rounding: Rounding, algorithm: Algorithm) -> Array:
    """What the products' sums err by: the scale, two products and T K terms a sum."""
    s = case.shape
    terms = rounding.parted(s.T, -(-s.T // (algorithm.chunk_size or max(s.T, 1))))
    lost = rounding.summed(s.K, terms, others=6, products=2)
    return np.asarray((lost * sizes + 8 * s.K * rounding.tiny * case.visible) * UP)
