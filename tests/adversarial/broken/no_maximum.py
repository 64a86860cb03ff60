"""Exponentials of the logits themselves, without their maximum."""

import functools

from attention import tiled

tiled_softmax = functools.partial(
    tiled, largest=lambda previous, logits: previous.clamp(0, 0), shrink=lambda previous, now: now + 1
)
