"""B5: keys past the sequence are masked, their values are what memory held: 0 times NaN (vllm#47305).

Shows where the last tile is partial and memory is not clean; hides when T is a multiple of the tile.
"""

from attention import TILE, tiled


def paged(rows):
    """The rows in pages of TILE tokens that nobody cleared."""
    pages = rows.new_empty((rows.shape[0], -(-rows.shape[1] // TILE) * TILE, *rows.shape[2:]))
    pages[:, : rows.shape[1]] = rows
    return pages


def tiled_softmax(q, k, v, *, scale):
    return tiled(paged(q), paged(k), paged(v), scale=scale)[0][:, : q.shape[1]], None
