"""A tile with a larger maximum leaves what earlier tiles summed as it was."""

import functools

from attention import tiled

tiled_softmax = functools.partial(tiled, shrink=lambda previous, now: now * 0 + 1)
