"""The blocks of the score matrix that tiled softmax attention visits, and their exponents."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.masks import hidden
from kernels.softmax.arguments import Arguments
from kernels.softmax.decay import TiledDecay


class Rows(NamedTuple):
    """Consecutive queries inside one tile.

    ``queries`` are their rows in the query tensor, ``inside`` their rows within ``tile``, ``first`` the
    position of the first one among the keys (negative when there are more queries than keys), ``tiles`` the
    key tiles of which any row sees anything.
    """

    queries: slice
    inside: slice
    tile: int
    first: int
    tiles: range


class Grid:
    """One sequence, cut into tiles of ``tile_size`` positions, the same for queries and keys."""

    def __init__(self, arguments: Arguments, causal: bool, window: int | None, tile_size: int) -> None:
        self.q, self.k, self.v, self.g, self._slopes, _ = arguments
        self._causal, self._window, self.tile_size = causal, window, tile_size
        self._keys = self.k.shape[-2]
        self._tokens = self.q.shape[-2]
        self._decay = TiledDecay(self.g, tile_size) if self.g is not None and self._keys else None

    def key_slice(self, tile: int) -> slice:
        """The keys of a tile."""
        return slice(tile * self.tile_size, min((tile + 1) * self.tile_size, self._keys))

    def rows(self) -> Iterator[Rows]:
        """All queries, tile by tile."""
        offset, size = self._keys - self._tokens, self.tile_size
        first = offset
        while first < self._keys:
            tile = first // size
            end = min((tile + 1) * size, self._keys)
            inside = slice(first - tile * size, end - tile * size)
            yield Rows(slice(first - offset, end - offset), inside, tile, first, self._visible(first, end))
            first = end

    def _visible(self, first: int, end: int) -> range:
        """The key tiles that the queries at positions ``first`` to ``end`` - 1 see anything of."""
        low, high = 0, self._keys
        if self._window is not None:
            low, high = max(low, first - self._window + 1), min(high, end - 1 + self._window)
        if self._causal:
            high = min(high, end)
        return range(low // self.tile_size, -(-high // self.tile_size)) if high > low else range(0)

    def exponents(self, rows: Rows, tile: int) -> Tensor:
        """[B, HKV, G, rows, keys of the tile], -inf where a key is hidden: the mask acts before exp."""
        keys = self.key_slice(tile)
        q = self.q[..., rows.queries, :]
        x = (q.flatten(2, 3) @ self.k[:, :, keys].mT).unflatten(2, q.shape[2:4])
        if self._decay is not None:
            x += self._decay.exponents(rows.tile, rows.inside, tile)
        if self._slopes is not None:
            x -= self._slopes[..., None, None] * self.distance(rows, keys).abs()
        mask = self._hidden(rows, keys)
        return x if mask is None else x.masked_fill(mask, -torch.inf)

    def distance(self, rows: Rows, keys: slice) -> Tensor:
        """Query position minus key position, integers [rows, keys]."""
        count = rows.queries.stop - rows.queries.start
        place = torch.arange(rows.first, rows.first + count, device=self.q.device)
        return place[:, None] - torch.arange(keys.start, keys.stop, device=self.q.device)

    def _hidden(self, rows: Rows, keys: slice) -> Tensor | None:
        """Which keys of a block are hidden [rows, keys], or None if none is."""
        last = rows.first + rows.queries.stop - rows.queries.start - 1
        beyond = self._causal and keys.stop - 1 > rows.first
        farthest = max(last - keys.start, 0 if self._causal else keys.stop - 1 - rows.first)
        outside = self._window is not None and farthest >= self._window
        if not (beyond or outside):
            return None
        return hidden(self.distance(rows, keys), self._causal, self._window)
