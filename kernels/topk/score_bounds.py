"""Rigorous bounds, per query and key, on the exact softmax weight of the floats given."""

import torch
from torch import Tensor

U = 2.0**-53
"""Unit roundoff of float64: a result that does not underflow is within a factor 1 ± U of the exact one."""

SMALLEST = 2.0**-1022
"""At least the absolute error of one underflowing operation, even where denormals are flushed to 0."""


def gamma(n: int) -> float:
    """n U / (1 - n U), rounded up. Raises ValueError when n U is not small."""
    if n * U > 2.0**-10:
        raise ValueError(f"a sum of {n} terms is too long for an error bound in float64.")
    return n * U / (1 - n * U) * (1 + 8 * U)


def score_errors(scaled: Tensor, k: Tensor) -> Tensor:
    """Bounds [..., T, S] on |computed - exact| for the scores scaled @ k^T, computed in float64.

    scaled [..., T, K] is fl(scale q), k [..., S, K]. The exact score is the real number scale q.k of the
    floats given. Computed, it has one rounding per scale q_l, one per product (none in a fused multiply-add)
    and at most K - 1 per term in the sum, in whatever order. With A = sum_l |fl(scale q_l)| |k_l| the error
    is at most gamma_{K+1} A / (1 - U) (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
    section 3.1), and A is computed short by at most the share gamma_K. Underflow adds SMALLEST |k_l| per
    scaled entry and SMALLEST per product. The last factor covers the roundings of this computation itself.
    """
    width = k.shape[-1]
    relative = gamma(width + 2) / (1 - gamma(width + 2))
    sizes = scaled.abs() @ k.abs().mT
    underflow = SMALLEST * (k.abs().sum(-1).unsqueeze(-2) + width)
    return (relative * sizes + 4 * underflow) * (1 + 16 * U)


def largest(scores: Tensor, among: Tensor) -> Tensor:
    """The largest score [..., 1] where ``among`` is True, 0 where it is nowhere."""
    lowest = scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    best = torch.cat([lowest, scores.masked_fill(~among, -torch.inf)], dim=-1).amax(-1, keepdim=True)
    return best.masked_fill(best == -torch.inf, 0.0)


def weight_bounds(scores: Tensor, errors: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds [..., T, S] on e^(s - m), s the exact score and m one number per query.

    m is the largest computed score, taken as exact: a common shift cancels in every softmax weight. With d
    the rounded difference of score and m, s - m is within errors + U |d| of d, and adding that to d rounds
    once more. The exponential is assumed to err by at most 4 units in the last place, 8 U; float64
    libraries promise 1. Hidden keys (``visible`` False) get 0 and 0.
    """
    distance = (scores - largest(scores, visible)).masked_fill(~visible, 0.0)
    slack = (errors + 3 * U * distance.abs()) * (1 + 8 * U)
    lower = (distance - slack).exp() * (1 - 16 * U) - SMALLEST
    upper = (distance + slack).exp() * (1 + 16 * U) + SMALLEST
    return lower.clamp(min=0.0).masked_fill(~visible, 0.0), upper.masked_fill(~visible, 0.0)


def dropped_mass_bounds(lower: Tensor, upper: Tensor) -> Tensor:
    """Bounds [..., T, S + 1] on the softmax mass dropped when the first n = 0 ... S keys are kept.

    From bounds [..., T, S] on the keys' weights, in the order of keeping. With D and L sums of upper bounds
    of the dropped and of lower bounds of the kept weights, the mass is at most D / (D + L): neither
    replacement lowers the quotient (claim sparse.bucket-threshold, here with one bucket per key; with equal
    scores on each side it is the bound of sparse.gap-bound). Running sums of S terms of one sign err by at
    most gamma_S in whatever order, and the quotient is rounded up. A query without keys drops 0.
    """
    nothing = lower.new_zeros(*lower.shape[:-1], 1)
    share = 2 * gamma(lower.shape[-1] + 1)
    kept = torch.cat([nothing, lower.cumsum(-1)], dim=-1) * (1 - share)
    dropped = torch.cat([upper.flip(-1).cumsum(-1).flip(-1), nothing], dim=-1) * (1 + share)
    bound = (1 + 16 * U) / (1 + kept / dropped)
    return bound.clamp(max=1.0).masked_fill(dropped == 0, 0.0)
