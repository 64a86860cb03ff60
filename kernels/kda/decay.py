"""Scores of a chunk with one decay per channel, and their adjoint."""

import torch
from torch import Tensor

from kernels.blocks import crossing_blocks, pairs
from kernels.exponents import block_decays, later_rows, levels


class ChannelDecay:
    """Keys and queries kq [..., C, 2, K] (keys first) with log decays g [..., C, K], C a power of two.

    ``start`` [..., C, 2, K] is kq decayed from the chunk's start to its own row, whose gate is included;
    ``k_end`` [..., C, K] the keys decayed from their row to the chunk's end; ``total`` [..., K, 1] the decay
    over the chunk. ``kk`` and ``qk`` [..., C, C] are the scores sum over channels of
    x_i k_j e^(g_{j+1} + ... + g_i) with x = k and x = q, zero for j > i, where the diagonal of ``kk`` is not
    formed: a key that is written does not predict itself. No [C, C, K] array exists, and no exponent is
    above 0 (`kernels.exponents`). ``adjoint`` keeps what `backward` needs.

    What is read from the state before the chunk is ``start`` times the state; `to_state` is ``k_end``^T times
    a matrix.
    """

    def __init__(self, kq: Tensor, g: Tensor, adjoint: bool) -> None:
        k, q = kq.unbind(-2)
        self._kq, self._decays = kq, block_decays(g)
        scores = kq.new_zeros(*kq.shape[:-1], kq.shape[-3])
        self.kk, self.qk = scores.unbind(-2)
        self.qk.diagonal(dim1=-2, dim2=-1).copy_((q * k).sum(-1))
        self.start, self.k_end = self._decays[0].unsqueeze(-2) * kq, torch.empty_like(g).copy_(k)
        self._levels = []
        for width, later, earlier in levels(self.start, self.k_end, self._decays):
            products = later.flatten(-3, -2) @ earlier.mT
            _crossing(scores, width).copy_(products.unflatten(-2, (width, 2)))
            if adjoint:
                self._levels.append((width, later.clone(), earlier.clone()))
        self.total = self._decays[-1].mT

    def to_state(self, writes: Tensor) -> Tensor:
        return self.k_end.mT @ writes

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor, d_scores: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of kq and g from those of the members, d_scores [..., C, 2, C] lower triangular."""
        d_start, d_end = d_start.clone(), d_end.clone()
        # Of the sums over blocks: of all C rows, and down to one row, where they are the gates.
        d_sums = (d_total * self.total).mT
        for (width, later, earlier), decay in zip(
            reversed(self._levels), reversed(self._decays[:-1]), strict=True
        ):
            d_later, d_earlier = later_rows(d_start, width), pairs(d_end, width)[..., 0, :, :]
            of_first, of_second = decay.unflatten(-2, (-1, 2)).unsqueeze(-2).unbind(-3)
            d_later *= of_first.unsqueeze(-2)
            d_earlier *= of_second
            d_first, d_second = (later * d_later).sum((-3, -2)), (earlier * d_earlier).sum(-2)
            d_sums = torch.stack([d_sums + d_first, d_sums + d_second], dim=-2).flatten(-3, -2)
            d_products = _crossing(d_scores, width).flatten(-3, -2)
            d_later += (d_products @ earlier).unflatten(-2, (width, 2))
            d_earlier += d_products.mT @ later.flatten(-3, -2)
        k, q = self._kq.unbind(-2)
        d_kq = self._decays[0].unsqueeze(-2) * d_start
        d_sums += (self._kq * d_kq).sum(-2)
        d_k, d_q = d_kq.unbind(-2)
        d_diagonal = d_scores[..., 1, :].diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
        d_k += d_end + d_diagonal * q
        d_q += d_diagonal * k
        return d_kq, d_sums


def _crossing(scores: Tensor, width: int) -> Tensor:
    """View of [..., C, 2, C]: where rows of second blocks meet columns of first, [..., width, 2, width]."""
    return crossing_blocks(scores.transpose(-3, -2), width).movedim(-4, -2)
