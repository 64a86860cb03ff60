"""Sums of natural-log gates over tokens, tile by tile, that never subtract and so never exceed 0."""

import torch
from torch import Tensor


class TiledDecay:
    """The exponent g_{j+1} + ... + g_i for blocks of queries i and keys j of one tile each.

    Every exponent is a sum of gates, not a difference of two running sums: it is at most 0, small gates keep
    their digits behind a large one, and a gate of -inf gives -inf and not NaN.
    """

    def __init__(self, g: Tensor, tile_size: int) -> None:
        """g [..., S], cut into tiles of ``tile_size``."""
        self._tiles = g.split(tile_size, dim=-1)
        self._from_start = [tile.cumsum(-1) for tile in self._tiles]
        self._to_end = [suffix_sums(tile) for tile in self._tiles]
        self._totals = torch.stack([tile[..., -1] for tile in self._from_start], dim=-1)

    def exponents(self, a: int, rows: slice, b: int) -> Tensor:
        """[..., rows, keys of tile b] for the given rows of tile a >= b; entries with j > i are 0."""
        if a == b:
            return segment_sums(self._tiles[a])[..., rows, :]
        between = self._totals[..., b + 1 : a].sum(-1)
        from_start = self._from_start[a][..., rows] + between.unsqueeze(-1)
        return from_start.unsqueeze(-1) + self._to_end[b].unsqueeze(-2)


class TiledDecayGradient:
    """The gradient [..., S] of the gates, gathered from the gradients of the exponents block by block.

    The gradient of g_t adds those of all exponents (i, j) with j < t <= i. Here each is added where it
    belongs; a running sum over queries minus one over keys would cancel.
    """

    def __init__(self, g: Tensor, tile_size: int) -> None:
        """For gates g [..., S] in tiles of ``tile_size``."""
        self._gradient = torch.zeros_like(g, memory_format=torch.contiguous_format)
        self._tiles = self._gradient.split(tile_size, dim=-1)
        self._whole = g.new_zeros(*g.shape[:-1], len(self._tiles))

    def add(self, a: int, rows: slice, b: int, gradient: Tensor) -> None:
        """Add the gradient [..., rows, keys of tile b] of ``TiledDecay.exponents(a, rows, b)``."""
        if a == b:
            full = gradient.new_zeros(*gradient.shape[:-2], gradient.shape[-1], gradient.shape[-1])
            full[..., rows, :] = gradient
            self._tiles[a].add_(_from_here(full, -2).tril(-1).sum(-1))
            return
        by_row, by_key = gradient.sum(-1), gradient.sum(-2)
        self._tiles[a][..., : rows.start] += by_row.sum(-1, keepdim=True)
        self._tiles[a][..., rows] += _from_here(by_row, -1)
        self._tiles[b][..., 1:] += by_key[..., :-1].cumsum(-1)
        self._whole[..., b + 1 : a] += by_row.sum(-1, keepdim=True)

    def result(self) -> Tensor:
        """[..., S], once every block has been added."""
        for index, tile in enumerate(self._tiles):
            tile.add_(self._whole[..., index : index + 1])
        return self._gradient


def _from_here(x: Tensor, dim: int) -> Tensor:
    """Sums over an axis from each entry to the last."""
    return x.flip(dim).cumsum(dim).flip(dim)


def suffix_sums(g: Tensor) -> Tensor:
    """[..., C] to the same shape: entry j is g_{j+1} + ... + g_{C-1}."""
    later = torch.cat([g[..., 1:], torch.zeros_like(g[..., :1])], dim=-1)
    return _from_here(later, -1)


def segment_sums(g: Tensor) -> Tensor:
    """[..., C] to [..., C, C] with entry (i, j) = g_{j+1} + ... + g_i, which is 0 for j >= i."""
    size = g.shape[-1]
    return g.unsqueeze(-1).expand(*g.shape, size).tril(-1).cumsum(-2)
