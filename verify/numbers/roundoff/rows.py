"""Softmax rows computed in float32 and their true errors: what the bound of `softmax` is held to."""

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

Row = NDArray[np.float32]
_BITS = 256


def _exp(x: Row) -> Row:
    """By way of float64: within 0.501 units in the last place, which numpy's own for float32 is not."""
    return np.exp(x.astype(np.float64)).astype(np.float32)


def two_passes(logits: Row, values: Row) -> np.float32:
    """The row with its maximum found first and both sums taken from left to right."""
    weights = _exp(logits - logits.max())
    total = np.add.accumulate(weights)[-1]
    return np.float32(np.add.accumulate(weights * values)[-1] / total)


def online(logits: Row, values: Row, tile: int = 1) -> np.float32:
    """The row by tiles of keys, with a running maximum and sums that are rescaled when it rises."""
    highest, total, read = np.float32(-np.inf), np.float32(0), np.float32(0)
    for first in range(0, len(logits), tile):
        part, value = logits[first : first + tile], values[first : first + tile]
        new = max(highest, part.max())
        factor, weights = _exp(highest - new), _exp(part - new)
        total = total * factor + np.add.accumulate(weights)[-1]
        read = read * factor + np.add.accumulate(weights * value)[-1]
        highest = new
    return np.float32(read / total)


def deviation(logits: Row, values: Row, computed: np.float32) -> float:
    """A number that |computed - exact| certainly reaches."""
    with ctx.workprec(_BITS):
        weights = [arb(x).exp() for x in logits.astype(float).tolist()]
        read = sum((w * v for w, v in zip(weights, values.astype(float).tolist(), strict=True)), arb(0))
        difference = abs(read / sum(weights, arb(0)) - arb(float(computed))).abs_lower()
        return float(np.nextafter(float(difference), 0.0))


def drawn(keys: int, reach: float, source: np.random.Generator) -> tuple[Row, Row]:
    """Uniform logits in ±reach / 2 and values in ±1."""
    logits = source.uniform(-reach / 2, reach / 2, keys).astype(np.float32)
    return logits, source.uniform(-1, 1, keys).astype(np.float32)


def drifting(keys: int) -> tuple[Row, Row]:
    """A row whose two sums drift apart: after a weight of 1 come weights a little above 2^-24, so that every
    addition to their sum is rounded up to 2^-23, while their products with values a little below 1 are less
    than 2^-24 and every addition of one is lost."""
    logits = np.full(keys, -16.6355, np.float32)
    values = np.full(keys, 1 - 2.0**-12, np.float32)
    logits[0], values[0] = 0, 1
    return logits, values
