"""Attention by weights that add up to 1, in float64, with a rigorous bound of its error."""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.audit.reference.recurrence import LOST, SMALLEST, U


def float64(case: Case) -> tuple[Array, Array, Array, Array]:
    """Output, no state, and bounds of their errors, over all sequences and heads at once.

    Logits s_j = (scale q)^T k_j come with an error of at most (gamma_K + 2u) |scale q|^T|k_j|, and their
    distance d_j to the largest computed one with u|d_j| more: eta_j in all. Any common shift cancels, so that
    the exact weights are x_j / sum x, x_j within (e^eta_j - 1) e^d_j of e^d_j, and the computed exponential
    within its enclosure of that: b_j in all. With gamma_T for the sums, N = sum x_j v_j and D = sum x_j have
    errors

        dN <= sum b_j ||v_j|| + gamma_T || sum x_j |v_j| ||,   dD <= sum b_j + gamma_T D,

    and ||N~/D~ - N/D|| <= (dN + ||o|| dD) / (D~ - dD) + u||o||. D~ >= 1 - dD as the largest weight is 1.

    Linear attention with its normaliser has the products s_j themselves for x_j, and b_j is their error. The
    bound is infinite where D~ <= dD, which products that are not negative never give.
    """
    s = case.shape
    v = case.spread("v").swapaxes(1, 2)
    up = 1 + 2 * (s.K + s.V + s.T + 64) * U
    weights, error = _numerators(case)
    if case.kind.sink is not None:
        v = np.concatenate([v, np.zeros((*v.shape[:2], 1, s.V))], axis=2)
    total = weights.sum(-1, keepdims=True)
    output = (weights @ v) / _nonzero(total)
    gamma = _gamma(s.T + 1)
    above = error @ length(v)
    sizes = np.abs(weights)
    above += gamma * length(sizes @ np.abs(v)) + 2 * s.T * s.V * SMALLEST
    below = error.sum(-1, keepdims=True) + gamma * sizes.sum(-1, keepdims=True)
    size = length(output)
    bound = _over(above + size * below, total - below) * up + U * size + s.V * SMALLEST
    bound = bound[..., 0] * up
    nothing = np.zeros((s.B, s.HV, 0, 0)), np.zeros((s.B, s.HV))
    return output.swapaxes(1, 2), nothing[0], bound.swapaxes(1, 2), nothing[1]


def length(x: Array) -> Array:
    """The 2-norm of every row, ``[..., 1]``, not below the exact one but for the roundings of its sum."""
    return np.asarray(np.linalg.norm(x, axis=-1, keepdims=True)) + LOST


def weights(case: Case) -> tuple[Array, Array]:
    """The attention matrix ``[B, HV, T, T]`` and a bound of each entry's error."""
    shares, bound = _shares(case)
    return shares[..., : case.shape.T], bound[..., : case.shape.T]


def sink_weights(case: Case) -> tuple[Array, Array]:
    """What a sink takes of every query, ``[B, HV, T, 1]``, and a bound of each entry's error."""
    shares, bound = _shares(case)
    return shares[..., case.shape.T :], bound[..., case.shape.T :]


def _shares(case: Case) -> tuple[Array, Array]:
    """The weights, with a sink's in a last column."""
    powers, error = _numerators(case)
    total = powers.sum(-1, keepdims=True)
    below = error.sum(-1, keepdims=True) + _gamma(case.shape.T + 1) * np.abs(powers).sum(-1, keepdims=True)
    shares = powers / _nonzero(total)
    up = 1 + 2 * (case.shape.T + 64) * U
    bound = (_over(error + np.abs(shares) * below, total - below) * up + 2 * U * np.abs(shares)) * up
    return shares, bound


def rates(case: Case) -> tuple[Array, Array]:
    """By what a weight's own logit, or product, moves it before the weights are centred, and a bound.

    The weights ``[B, HV, T, T]`` for softmax, and one over the sum of the products ``[B, HV, T, 1]``.
    """
    if case.kind.weights == "softmax":
        return weights(case)
    products, error = _numerators(case)
    total = products.sum(-1, keepdims=True)
    below = error.sum(-1, keepdims=True) + _gamma(case.shape.T) * np.abs(products).sum(-1, keepdims=True)
    up = 1 + 2 * (case.shape.T + 64) * U
    rate = 1 / _nonzero(total)
    return rate, (_over(np.abs(rate) * below, total - below) + 2 * U * np.abs(rate)) * up


def _nonzero(total: Array) -> Array:
    return np.where(total == 0, 1.0, total)


def _over(error: Array, least: Array) -> Array:
    """error / least, infinite where ``least`` is not positive."""
    return np.where(least > 0, error / np.where(least > 0, least, 1.0), np.inf)


def _numerators(case: Case) -> tuple[Array, Array]:
    """What the weights are in proportion to, 0 where a query may not look, and a bound of each error.

    With a sink, a last column more, of its own.
    """
    if case.kind.weights == "softmax":
        return _exponentials(case)
    s = case.shape
    k, q = (case.spread(name).swapaxes(1, 2) for name in ("k", "q"))
    q = q * case.scale
    causal = case.visible
    products = np.where(causal, q @ k.swapaxes(-1, -2), 0.0)
    sizes = (_gamma(s.K) + 2 * U) * (np.abs(q) @ np.abs(k).swapaxes(-1, -2)) + 2 * s.K * SMALLEST
    return products, np.where(causal, sizes * (1 + 2 * (s.K + 64) * U), 0.0)


def _exponentials(case: Case) -> tuple[Array, Array]:
    """e^(s_j - max) for every query and key, 0 where it may not look, and a bound of each error."""
    s = case.shape
    k, q = (case.spread(name).swapaxes(1, 2) for name in ("k", "q"))
    q = q * case.scale
    up = 1 + 2 * (s.K + s.V + s.T + 64) * U
    causal = case.visible
    logits = np.where(causal, q @ k.swapaxes(-1, -2), -np.inf)
    sizes = (_gamma(s.K) + 2 * U) * (np.abs(q) @ np.abs(k).swapaxes(-1, -2)) + 2 * s.K * SMALLEST
    if case.kind.sink is not None:
        causal, logits, sizes = (
            np.concatenate([x, np.full((*x.shape[:-1], 1), last)], axis=-1)
            for x, last in ((causal, True), (logits, case.kind.sink), (sizes, 0.0))
        )
    with np.errstate(invalid="ignore"):
        distance = np.where(causal, logits - logits.max(axis=-1, keepdims=True, initial=-np.inf), 0.0)
    weights, own_error = (np.where(causal, x, 0.0) for x in enclosed_exp(distance))
    eta = (sizes + U * np.abs(distance)) * up
    error = ((weights + own_error) * np.expm1(eta) * (1 + 8 * U) + own_error) * up
    return weights, error


def _gamma(n: int) -> float:
    return n * U / (1 - n * U)
