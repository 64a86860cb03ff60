"""Scores of a chunk between any reading and any writing vectors, decayed in between, and their adjoint."""

import torch
from torch import Tensor

from kernels.blocks import crossing_blocks, pairs
from kernels.exponents import Exponents, adjoint_levels


class ChannelDecay:
    """Readers [..., L, C, K] and writers [..., R, C, K] with log decays g [..., C, K], C a power of two.

    ``start`` are the readers decayed from the chunk's start to their own row, whose gate is included; ``end``
    the writers decayed from their row to the chunk's end; ``total`` [..., K, 1] the decay over the chunk;
    ``scores`` [..., L, R, C, C] the sums over channels of reader_i writer_j e^(g_{j+1} + ... + g_i) for
    j <= i, else 0. All exponents are those of `kernels.exponents`, at most 0.
    """

    def __init__(self, readers: Tensor, writers: Tensor, g: Tensor) -> None:
        self._readers, self._writers = readers, writers
        exponents = Exponents(g)
        left, right = readers.unsqueeze(-3), writers.unsqueeze(-4)
        self._levels = []
        kinds = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        self.scores = left.new_zeros(*kinds, readers.shape[-2], readers.shape[-2])
        self.scores.diagonal(dim1=-2, dim2=-1).copy_((left * right).sum(-1))
        for width, into, out_of in exponents.levels():
            self._levels.append((width, into.exp(), out_of.exp()))
            later, earlier = self._decayed(*self._levels[-1])
            crossing_blocks(self.scores, width).copy_(later.unsqueeze(-4) @ earlier.unsqueeze(-5).mT)
        self._from_start, self._to_end = exponents.into.exp_(), exponents.out_of.exp_()
        self.start = self._from_start.unsqueeze(-3) * readers
        self.end = self._to_end.unsqueeze(-3) * writers
        self.total = self._from_start[..., -1, :].unsqueeze(-1)

    def _decayed(self, width: int, into: Tensor, out_of: Tensor) -> tuple[Tensor, Tensor]:
        """Readers of the second blocks from the border, writers of the first blocks to it."""
        later = into.unsqueeze(-4) * pairs(self._readers, width)[..., 1, :, :]
        return later, out_of.unsqueeze(-4) * pairs(self._writers, width)[..., 0, :, :]

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor, d_scores: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of readers, writers and g from those of the members; of the scores for j <= i only."""
        readers, writers = self._readers, self._writers
        d_readers, d_writers = self._from_start.unsqueeze(-3) * d_start, self._to_end.unsqueeze(-3) * d_end
        d_into = (readers * d_readers).sum(-3)
        d_into[..., -1, :] += (d_total * self.total).squeeze(-1)
        d_out_of = (writers * d_writers).sum(-3)
        diagonal = d_scores.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        d_readers += (diagonal * writers.unsqueeze(-4)).sum(-3)
        d_writers += (diagonal * readers.unsqueeze(-3)).sum(-4)
        levels = zip(reversed(self._levels), adjoint_levels(d_into, d_out_of), strict=True)
        for (width, into, out_of), (_, d_second, d_first) in levels:
            later, earlier = self._decayed(width, into, out_of)
            crossing = crossing_blocks(d_scores, width)
            d_later = (crossing @ earlier.unsqueeze(-5)).sum(-4)
            d_earlier = (crossing.mT @ later.unsqueeze(-4)).sum(-5)
            d_second += (later * d_later).sum(-4)
            d_first += (earlier * d_earlier).sum(-4)
            pairs(d_readers, width)[..., 1, :, :] += into.unsqueeze(-4) * d_later
            pairs(d_writers, width)[..., 0, :, :] += out_of.unsqueeze(-4) * d_earlier
        return d_readers, d_writers, d_into


class HeadDecay:
    """The same with one log decay for all channels, g [..., C, 1], which factors out of the dot product."""

    def __init__(self, readers: Tensor, writers: Tensor, g: Tensor) -> None:
        self._readers, self._writers = readers, writers
        exponents = Exponents(g)
        # -inf above the diagonal: the exponent is masked, not the exponential, so gradients stay finite.
        between = g.new_full((*g.shape[:-1], g.shape[-2]), -torch.inf)
        between.diagonal(dim1=-2, dim2=-1).fill_(0)
        for width, into, out_of in exponents.levels():
            crossing_blocks(between, width).copy_(into + out_of.mT)
        self._between = between.exp_().unsqueeze(-3).unsqueeze(-3)
        self.scores = readers.unsqueeze(-3) @ writers.unsqueeze(-4).mT * self._between
        self._from_start, self._to_end = exponents.into.exp_(), exponents.out_of.exp_()
        self.start = self._from_start.unsqueeze(-3) * readers
        self.end = self._to_end.unsqueeze(-3) * writers
        self.total = self._from_start[..., -1, :].unsqueeze(-1)

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor, d_scores: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As of ``ChannelDecay``; ``d_total`` [..., K, 1] is per channel here too."""
        plain = d_scores * self._between
        d_readers = self._from_start.unsqueeze(-3) * d_start
        d_writers = self._to_end.unsqueeze(-3) * d_end
        d_into = (self._readers * d_readers).sum((-3, -1)).unsqueeze(-1)
        d_into[..., -1, :] += (d_total * self.total).sum(-2)
        d_out_of = (self._writers * d_writers).sum((-3, -1)).unsqueeze(-1)
        d_readers += (plain @ self._writers.unsqueeze(-4)).sum(-3)
        d_writers += (plain.mT @ self._readers.unsqueeze(-3)).sum(-4)
        d_between = (d_scores * self.scores).sum((-4, -3))
        for width, d_second, d_first in adjoint_levels(d_into, d_out_of):
            crossing = crossing_blocks(d_between, width)
            d_second += crossing.sum(-1, keepdim=True)
            d_first += crossing.sum(-2).unsqueeze(-1)
        return d_readers, d_writers, d_into
