"""Device functions of the tiled softmax kernels: which tiles meet, and the exponents where two meet."""

from kernels.triton_runtime import tl, triton


@triton.jit
def load_tile(x, first, place, columns, COLUMNS: tl.constexpr, present):
    """[TILE, columns] of x [rows, COLUMNS]: the rows ``first`` + ``place``, 0 where not ``present``."""
    places = x + (first + place)[:, None] * COLUMNS + columns[None, :]
    return tl.load(places, mask=present[:, None] & (columns[None, :] < COLUMNS), other=0.0)


@triton.jit
def key_tiles(
    tile, offset, key_count, window, TILE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr
):
    """The first key tile that queries of a tile see anything of, and the one past the last."""
    low = tl.maximum(tile * TILE, offset)
    last = tl.minimum(tile * TILE + TILE, key_count)
    high = key_count
    if CAUSAL:
        high = last
    if WINDOWED:
        high = tl.minimum(high, last - 1 + window)
        low = tl.maximum(low - window + 1, 0)
    else:
        low = low * 0
    low = low // TILE
    return low, tl.maximum((tl.maximum(high, 0) + TILE - 1) // TILE, low)


@triton.jit
def query_tiles(
    tile, first, key_count, window, TILE: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr
):
    """The tile, from the ``first`` with queries on, of the first queries that see a key tile, and the one
    past the last."""
    low = first
    high = (key_count + TILE - 1) // TILE
    if CAUSAL:
        low = tl.maximum(low, tile)
    if WINDOWED:
        nearest = tile * TILE - window + 1
        low = tl.where(nearest > 0, tl.maximum(low, nearest // TILE), low)
        high = tl.minimum(high, (tile * TILE + TILE + window - 2) // TILE + 1)
    return low, tl.maximum(high, low)


@triton.jit
def sums_after(gates, place, key_count, TILE: tl.constexpr):
    """For each place of a tile the sum of the log decays after it in the tile."""
    inside = (tl.arange(0, TILE) < TILE - 1) & (place + 1 < key_count)
    return tl.cumsum(tl.load(gates + place + 1, mask=inside, other=0.0), axis=0, reverse=True)


@triton.jit
def exponents(
    query, key, own, out_of, slope, position, place, real, present, diagonal, window,
    GATED: tl.constexpr, SLOPED: tl.constexpr, CAUSAL: tl.constexpr, WINDOWED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """[TILE, TILE], -inf where a key is hidden: queries at ``position``, keys at ``place``.

    ``own`` are the log decays in the queries' tile, ``out_of`` their sums from each key to the start of that
    tile. On the ``diagonal``, where both are one tile, each segment is summed. Nothing is subtracted.
    """
    x = tl.dot(query, tl.trans(key), input_precision=P)
    distance = position[:, None] - place[None, :]
    if GATED:
        if diagonal:
            x += tl.cumsum(tl.where(distance > 0, own[:, None], 0.0), axis=0)
        else:
            x += tl.cumsum(own, axis=0)[:, None] + out_of[None, :]
    if SLOPED:
        x -= slope * tl.abs(distance).to(x.dtype)
    visible = present[None, :] & real[:, None]
    if CAUSAL:
        visible &= distance >= 0
    if WINDOWED:
        visible &= tl.abs(distance) < window
    return tl.where(visible, x, -float("inf"))
