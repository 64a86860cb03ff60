"""Scores of a chunk with one decay per channel, and their adjoint."""

import torch
from torch import Tensor

from kernels.blocks import crossing_blocks, diagonal_blocks, pairs
from kernels.exponents import Exponents, adjoint_levels

_TILE = 16
"""Rows of the matrix products inside which narrower blocks lie: many tiny products cost more than one."""


class ChannelDecay:
    """Keys and queries kq [..., 2, C, K] (keys first) with log decays g [..., C, K], C a power of two.

    ``start`` [..., 2, C, K] is kq decayed from the chunk's start to its own row, whose gate is included;
    ``k_end`` [..., C, K] the keys decayed from their row to the chunk's end; ``total`` [..., K, 1] the decay
    over the chunk. ``kk`` and ``qk`` [..., C, C] are the scores sum over channels of
    x_i k_j e^(g_{j+1} + ... + g_i) with x = k and x = q, zero for j > i; no [C, C, K] array exists. All
    exponents are those of `kernels.exponents`, at most 0. ``adjoint`` keeps what `backward` needs.
    """

    def __init__(self, kq: Tensor, g: Tensor, adjoint: bool) -> None:
        self._kq, k = kq, kq[..., 0, :, :]
        scores = kq.new_zeros(*kq.shape[:-1], kq.shape[-2])
        scores.diagonal(dim1=-2, dim2=-1).copy_((kq * k.unsqueeze(-3)).sum(-1))
        exponents = Exponents(g)
        self._levels = []
        for width, into, out_of in exponents.levels():
            level = into.exp(), out_of.exp()
            earlier = self._earlier(width, level[1])
            for x, of_x in zip(kq.unbind(-3), scores.unbind(-3), strict=True):
                products = _later(x, width, level[0]) @ earlier.mT
                crossing_blocks(of_x, width).copy_(diagonal_blocks(products, width).flatten(-4, -3))
            if adjoint:
                self._levels.append((width, *level))
        self.kk, self.qk = scores.unbind(-3)
        self._from_start, self._to_end = exponents.into.exp_(), exponents.out_of.exp_()
        self.start = self._from_start.unsqueeze(-3) * kq
        self.k_end = self._to_end * k
        self.total = self._from_start[..., -1, :].unsqueeze(-1)

    def _earlier(self, width: int, out_of: Tensor) -> Tensor:
        """Keys of all first blocks, decayed to the border to the second ones: [..., tiles, rows, K]."""
        return _tiled(out_of * pairs(self._kq[..., 0, :, :], width)[..., 0, :, :])

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor, d_scores: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of kq and g from those of the members, d_scores [..., 2, C, C] lower triangular."""
        kq, k = self._kq, self._kq[..., 0, :, :]
        d_kq = self._from_start.unsqueeze(-3) * d_start
        d_into = (kq * d_kq).sum(-3)
        d_into[..., -1, :] += (d_total * self.total).squeeze(-1)
        d_k_end = self._to_end * d_end
        d_out_of = k * d_k_end
        diagonal = d_scores.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        d_kq += diagonal * k.unsqueeze(-3)
        d_k = d_kq[..., 0, :, :]
        d_k += d_k_end
        d_k += (diagonal * kq).sum(-3)
        levels = zip(reversed(self._levels), adjoint_levels(d_into, d_out_of), strict=True)
        for (width, into, out_of), (_, d_second, d_first) in levels:
            earlier = self._earlier(width, out_of)
            d_earlier = torch.zeros_like(earlier)
            for x, d_x, of_x in zip(*(y.unbind(-3) for y in (kq, d_kq, d_scores)), strict=True):
                later = _later(x, width, into)
                d_tiles = earlier.new_zeros(*earlier.shape[:-1], earlier.shape[-2])
                blocks = diagonal_blocks(d_tiles, width)
                blocks.copy_(crossing_blocks(of_x, width).unflatten(-3, blocks.shape[-4:-2]))
                d_later = d_tiles @ earlier
                d_earlier += d_tiles.mT @ later
                d_second.addcmul_(_untiled(later, width), _untiled(d_later, width))
                pairs(d_x, width)[..., 1, :, :].addcmul_(into, _untiled(d_later, width))
            d_first.addcmul_(_untiled(earlier, width), _untiled(d_earlier, width))
            pairs(d_k, width)[..., 0, :, :].addcmul_(out_of, _untiled(d_earlier, width))
        return d_kq, d_into


def _later(x: Tensor, width: int, into: Tensor) -> Tensor:
    """Rows of all second blocks of x [..., C, K], decayed from the border: [..., tiles, rows, K]."""
    return _tiled(into * pairs(x, width)[..., 1, :, :])


def _tiled(x: Tensor) -> Tensor:
    """[..., blocks, width, K] to [..., tiles, rows, K]."""
    rows = x.shape[-3] * x.shape[-2]
    return x.flatten(-3, -2).unflatten(-2, (-1, max(min(_TILE, rows), x.shape[-2])))


def _untiled(x: Tensor, width: int) -> Tensor:
    """[..., tiles, rows, K] to [..., blocks, width, K]."""
    return x.flatten(-3, -2).unflatten(-2, (-1, width))
