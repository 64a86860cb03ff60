"""The gradient of attention to a given set of keys, formed again tile by tile from the set alone."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class KeptAttention(torch.autograd.Function):
    """Outputs that were computed from q, k, v and the kept keys, made differentiable in q, k and v.

    q [B, HKV, G, T, K], scaled; k [B, HKV, S, K]; v [B, HKV, S, V]; o [B, HKV, G, T, V]; kept
    [B, HKV, G, T, n], positions along S, -1 for none. With the weights P = softmax of the kept scores,
    dV = P^T dO, dS = P . (dO V^T - rowsum(P . dO V^T)), dQ = dS K and dK = dS^T Q. The set is held fixed: it
    changes only where two scores are equal or the bound meets epsilon. Memory O(B H tile_size S) beside the
    inputs and the set.
    """

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, o: Tensor, kept: Tensor, tile_size: int) -> Tensor:
        return o.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        q, k, v, _, kept, ctx.tile_size = inputs
        ctx.save_for_backward(q, k, v, kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_o: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, kept = ctx.saved_tensors
        d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
        keys, values = k.unsqueeze(2), v.unsqueeze(2)
        for start in range(0, q.shape[3], ctx.tile_size):
            rows = slice(start, start + ctx.tile_size)
            query, d_out = q[..., rows, :], d_o[..., rows, :]
            weights = kept_weights(query @ keys.mT, kept[..., rows, :])
            d_weights = d_out @ values.mT
            d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
            d_q[..., rows, :] = d_scores @ keys
            d_k += (d_scores.mT @ query).sum(2)
            d_v += (weights.mT @ d_out).sum(2)
        return d_q, d_k, d_v, None, None, None


def kept_weights(scores: Tensor, kept: Tensor) -> Tensor:
    """Softmax of the scores [..., T, S] of the kept keys [..., T, n], 0 elsewhere and where none is kept."""
    keys = scores.shape[-1]
    # The column added at the end takes the places of -1.
    chosen = scores.new_zeros(*scores.shape[:-1], keys + 1, dtype=torch.bool)
    chosen = chosen.scatter(-1, kept.where(kept >= 0, keys), True)[..., :keys]
    # A row without any key is NaN in torch's softmax.
    return torch.softmax(scores.masked_fill(~chosen, -torch.inf), -1).masked_fill(~chosen, 0.0)
