"""Scores of a chunk with one decay per head, and their adjoint."""

import torch
from torch import Tensor

from kernels.blocks import crossing_blocks
from kernels.delta.decay import plain_scores, plain_scores_backward
from kernels.exponents import Exponents, adjoint_levels


class HeadDecay:
    """Keys and queries kq [..., 2, C, K] with log decays g [..., C, 1]; members as of ``ChannelDecay``."""

    def __init__(self, kq: Tensor, g: Tensor) -> None:
        rows = g.shape[-2]
        # -inf above the diagonal: the exponent is masked, not the exponential, so gradients stay finite.
        between = g.new_full((*g.shape[:-1], rows), -torch.inf)
        between.diagonal(dim1=-2, dim2=-1).fill_(0)
        exponents = Exponents(g)
        for width, into, out_of in exponents.levels():
            crossing_blocks(between, width).copy_(into + out_of.mT)
        self._kq, self._between = kq, between.exp_()
        # One decay for all channels factors out of the dot product.
        self._scores = plain_scores(kq) * self._between.unsqueeze(-3)
        self.kk, self.qk = self._scores.unbind(-3)
        self._from_start, self._to_end = exponents.into.exp_(), exponents.out_of.exp_()
        self.start = self._from_start.unsqueeze(-3) * kq
        self.k_end = self._to_end * kq[..., 0, :, :]
        self.total = self._from_start[..., -1:, :]

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor, d_scores: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of kq and g from those of the members, d_scores [..., 2, C, C] lower triangular."""
        d_kq = plain_scores_backward(self._kq, d_scores * self._between.unsqueeze(-3))
        d_kq += self._from_start.unsqueeze(-3) * d_start
        d_kq[..., 0, :, :] += self._to_end * d_end
        d_into = (d_start * self.start).sum((-3, -1)).unsqueeze(-1)
        d_into[..., -1:, :] += d_total.sum(-2, keepdim=True) * self.total
        d_out_of = (d_end * self.k_end).sum(-1, keepdim=True)
        d_between = (d_scores * self._scores).sum(-3)
        for width, into, out_of in adjoint_levels(d_into, d_out_of):
            crossing = crossing_blocks(d_between, width)
            into += crossing.sum(-1, keepdim=True)
            out_of += crossing.sum(-2).unsqueeze(-1)
        return d_kq, d_into
