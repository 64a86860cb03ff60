"""Softmax attention in float64, with a rigorous bound of its error."""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.audit.reference.recurrence import SMALLEST, U


def float64(case: Case) -> tuple[Array, Array, Array, Array]:
    """Output, no state, and bounds of their errors, over all sequences and heads at once.

    Logits s_j = (scale q)^T k_j come with an error of at most (gamma_K + 2u) |scale q|^T|k_j|, and their
    distance d_j to the largest computed one with u|d_j| more: eta_j in all. Any common shift cancels, so that
    the exact weights are x_j / sum x, x_j within (e^eta_j - 1) e^d_j of e^d_j, and the computed exponential
    within its enclosure of that: b_j in all. With gamma_T for the sums, N = sum x_j v_j and D = sum x_j have
    errors

        dN <= sum b_j ||v_j|| + gamma_T || sum x_j |v_j| ||,   dD <= sum b_j + gamma_T D,

    and ||N~/D~ - N/D|| <= (dN + ||o|| dD) / (D~ - dD) + u||o||. D~ >= 1 - dD as the largest weight is 1.
    """
    s = case.shape
    v = case.spread("v").swapaxes(1, 2)
    up = 1 + 2 * (s.K + s.V + s.T + 64) * U
    weights, error = _exponentials(case)
    total = weights.sum(-1, keepdims=True)
    output = (weights @ v) / total
    gamma = _gamma(s.T)
    above = error @ np.linalg.norm(v, axis=-1)[..., None]
    above += gamma * np.linalg.norm(weights @ np.abs(v), axis=-1, keepdims=True) + 2 * s.T * s.V * SMALLEST
    below = error.sum(-1, keepdims=True) + gamma * total
    size = np.linalg.norm(output, axis=-1, keepdims=True)
    bound = ((above + size * below) / (total - below) * up + U * size + s.V * SMALLEST)[..., 0] * up
    nothing = np.zeros((s.B, s.HV, 0, 0)), np.zeros((s.B, s.HV))
    return output.swapaxes(1, 2), nothing[0], bound.swapaxes(1, 2), nothing[1]


def weights(case: Case) -> tuple[Array, Array]:
    """The attention matrix ``[B, HV, T, T]`` and a bound of each entry's error."""
    powers, error = _exponentials(case)
    total = powers.sum(-1, keepdims=True)
    below = error.sum(-1, keepdims=True) + _gamma(case.shape.T) * total
    shares = powers / total
    up = 1 + 2 * (case.shape.T + 64) * U
    return shares, ((error + shares * below) / (total - below) * up + 2 * U * shares) * up


def _exponentials(case: Case) -> tuple[Array, Array]:
    """e^(s_j - max) for every query and key, 0 where it may not look, and a bound of each error."""
    s = case.shape
    k, q = (case.spread(name).swapaxes(1, 2) for name in ("k", "q"))
    q = q * case.scale
    up = 1 + 2 * (s.K + s.V + s.T + 64) * U
    causal = np.tri(s.T, dtype=bool)
    logits = np.where(causal, q @ k.swapaxes(-1, -2), -np.inf)
    sizes = (_gamma(s.K) + 2 * U) * (np.abs(q) @ np.abs(k).swapaxes(-1, -2)) + 2 * s.K * SMALLEST
    with np.errstate(invalid="ignore"):
        distance = np.where(causal, logits - logits.max(axis=-1, keepdims=True, initial=-np.inf), 0.0)
    weights, own_error = (np.where(causal, x, 0.0) for x in enclosed_exp(distance))
    eta = (sizes + U * np.abs(distance)) * up
    error = ((weights + own_error) * np.expm1(eta) * (1 + 8 * U) + own_error) * up
    return weights, error


def _gamma(n: int) -> float:
    return n * U / (1 - n * U)
