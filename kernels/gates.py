"""Activations of raw gates, strengths and keys, as layers of the delta-rule family compute them."""

import torch
from torch import Tensor

L2_EPSILON = 1e-6
"""Added to the sum of squares, not to its mean and not to the root."""

# e^80 and e^-80 are normal numbers of float32, e^88 is below its largest number.
_TINY, _HUGE = -80.0, 88.0


def l2_normalise(x: Tensor) -> Tensor:
    """x / sqrt(sum x^2 + 1e-6) over the last axis, in x's dtype."""
    return x * (x.square().sum(-1, keepdim=True) + L2_EPSILON).rsqrt()


def log_decay(raw: Tensor, A_log: Tensor, dt_bias: Tensor | None, lower_bound: float | None) -> Tensor:
    """The natural-log decay g <= 0 of a raw gate, in raw's dtype.

    Without ``lower_bound``: g = -e^A_log softplus(raw + dt_bias), the gate of Mamba and Gated DeltaNet.
    With it: g = lower_bound sigmoid(e^A_log (raw + dt_bias)), Kimi Delta Attention's bounded gate, in
    (lower_bound, 0). ``A_log`` and ``dt_bias`` must broadcast to ``raw``.

    Neither a large A_log times a vanishing softplus nor their gradients become inf times 0: where softplus
    is e^x the exponents are added, and where it is not, e^88 of it already forgets everything in any format.
    """
    x = raw if dt_bias is None else raw + dt_bias
    rate = A_log.clamp(max=_HUGE).exp()
    if lower_bound is not None:
        return lower_bound * torch.sigmoid(rate * x)
    # logaddexp keeps all digits on both sides; torch's softplus drops e^-x above a threshold.
    soft = torch.logaddexp(x.clamp(min=_TINY), torch.zeros_like(x))
    return -torch.where(x < _TINY, (A_log + x).clamp(max=_HUGE).exp(), rate * soft)
