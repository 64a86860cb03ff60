"""Tables of the tiles that the programs of the tiled softmax kernels work on."""

from collections.abc import Iterator

import torch
from torch import Tensor

from kernels.softmax.arguments import Packing, sequences


def query_blocks(packing: Packing, tokens: int, keys: int, tile_size: int, device: torch.device) -> Tensor:
    """[blocks, 5]: first query, queries, first key, keys of a sequence, and a tile with any of its queries.

    A query's position is that of the key it is aligned with: the last query with the last key. With more
    queries than keys, the first positions are negative.
    """
    entries = [
        (*span, tile) for span, tiles, _ in _sequences(packing, tokens, keys, tile_size) for tile in tiles
    ]
    return torch.tensor(entries, dtype=torch.int64, device=device).reshape(-1, 5)


def key_blocks(packing: Packing, tokens: int, keys: int, tile_size: int, device: torch.device) -> Tensor:
    """[blocks, 7]: the same of a tile with any keys, the first tile with queries of its sequence (or the one
    past the last), and the number of that tile's query block."""
    entries = [
        (*span, tile, tiles.start, first_block)
        for span, tiles, first_block in _sequences(packing, tokens, keys, tile_size)
        for tile in range(-(-span[3] // tile_size))
    ]
    return torch.tensor(entries, dtype=torch.int64, device=device).reshape(-1, 7)


def _sequences(
    packing: Packing, tokens: int, keys: int, tile_size: int
) -> Iterator[tuple[tuple[int, int, int, int], range, int]]:
    """Of each sequence its first query, queries, first key and keys; its tiles with queries; and how many
    such tiles the sequences before it have."""
    blocks = 0
    for query, key in sequences(packing, tokens, keys):
        queried, seen = query.stop - query.start, key.stop - key.start
        past = -(-seen // tile_size)
        tiles = range((seen - queried) // tile_size if queried else past, past)
        yield (query.start, queried, key.start, seen), tiles, blocks
        blocks += len(tiles)
