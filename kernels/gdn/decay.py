"""Scores of a chunk with one decay per head, and their adjoint."""

import torch
from torch import Tensor

from kernels.blocks import crossing_blocks
from kernels.delta.decay import plain_scores, plain_scores_backward
from kernels.exponents import adjoint_levels, block_decays, levels


class HeadDecay:
    """Keys and queries kq [..., C, 2, K] with log decays g [..., C, 1]; members as of ``ChannelDecay``.

    One decay for all channels factors out of the scores: they are decayed, not kq.
    """

    def __init__(self, kq: Tensor, g: Tensor) -> None:
        decays = block_decays(g)
        into, self._to_end = decays[0].unsqueeze(-2).clone(), torch.ones_like(g)
        between = g.new_zeros(*g.shape[:-1], g.shape[-2])
        between.diagonal(dim1=-2, dim2=-1).fill_(1)
        for width, second, first in levels(into, self._to_end, decays):
            crossing_blocks(between, width).copy_(second.squeeze(-2) * first.mT)
        self._between = between.unsqueeze(-2)
        self._scores = plain_scores(kq) * self._between
        self.kk, self.qk = self._scores.unbind(-2)
        self._kq, self._into, self.start = kq, into, into * kq
        self.total = decays[-1]

    def to_state(self, writes: Tensor) -> Tensor:
        return self._kq[..., 0, :].mT @ (self._to_end * writes)

    @property
    def k_end(self) -> Tensor:
        return self._to_end * self._kq[..., 0, :]

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor, d_scores: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of kq and g from those of the members, d_scores [..., C, 2, C] lower triangular."""
        d_start, d_end = self._into * d_start, self._to_end * d_end
        d_kq = plain_scores_backward(self._kq, d_scores * self._between)
        d_kq += d_start
        d_kq[..., 0, :] += d_end
        d_into = (d_start * self._kq).sum((-2, -1)).unsqueeze(-1)
        d_into[..., -1:, :] += d_total.sum(-2, keepdim=True) * self.total
        d_out_of = (d_end * self._kq[..., 0, :]).sum(-1, keepdim=True)
        d_between = (d_scores * self._scores).sum(-2)
        for width, into, out_of in adjoint_levels(d_into, d_out_of):
            crossing = crossing_blocks(d_between, width)
            into += crossing.sum(-1, keepdim=True)
            out_of += crossing.sum(-2).unsqueeze(-1)
        return d_kq, d_into
