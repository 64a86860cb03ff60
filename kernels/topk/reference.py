"""Attention to a given set of keys in float64, and the mass it drops."""

import torch
from torch import Tensor

from kernels.masks import hidden
from kernels.softmax.arguments import finish, prepare
from kernels.topk.backward import kept_weights


def reference_topk(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    kept: Tensor,
    *,
    scale: float | None = None,
    causal: bool = True,
    window: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Softmax attention restricted to ``kept`` and renormalised, in float64 whatever the input dtype.

    kept [B, T, H, n], int64 positions along S, -1 for none, each at most once per query; other shapes and
    options as in ``kernels.softmax.reference.reference_softmax``. The dropped mass is what the full softmax
    gives the visible keys that are not kept; by claim sparse.dropped-mass o - o_kept is that mass times the
    difference between the means of the dropped and of the kept values.

    Returns o [B, T, H, V] and the dropped mass [B, T, H], both float64 estimates without bounds. A query that
    keeps nothing gives o = 0. Raises ValueError for a ``kept`` of wrong shape, dtype or range, and as
    ``kernels.softmax.arguments`` does.
    """
    arguments = prepare(q, k, v, scale=scale, causal=causal, window=window, dtype=torch.float64)
    tokens, keys = q.shape[1], k.shape[1]
    if kept.ndim != 4 or kept.shape[:3] != q.shape[:3] or kept.dtype != torch.int64:
        wanted, given = [*q.shape[:3], "n"], list(kept.shape)
        raise ValueError(f"kept must be int64 of shape {wanted}, but it is {kept.dtype} of shape {given}.")
    if ((kept < -1) | (kept >= keys)).any():
        raise ValueError(f"kept must hold positions below {keys} or -1, but it holds {kept.max().item()}.")
    distance = torch.arange(tokens)[:, None] + keys - tokens - torch.arange(keys)
    scores = arguments.q @ arguments.k.unsqueeze(2).mT
    scores = scores.masked_fill(hidden(distance.to(q.device), causal, window), -torch.inf)
    places = kept.transpose(1, 2).unflatten(1, arguments.q.shape[1:3])
    weights = kept_weights(scores, places)
    # A row without any key is NaN in torch's softmax. A kept key whose weight underflows has no mass.
    mass = torch.softmax(scores, -1).masked_fill(~(scores > -torch.inf), 0.0)
    o = weights @ arguments.v.unsqueeze(2)
    return finish(o, mass.masked_fill(weights > 0, 0.0).sum(-1), torch.float64)
