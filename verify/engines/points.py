"""Random exact points for derivations: seeded rationals, positive where the setting says so."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

SEED = 20260101
"""Seed of every random point; recorded in certificates."""


def chooser(source: random.Random, data: dict[str, Any], top: int) -> Callable[[str], Fraction]:
    """A function that gives each written-out name its own random rational, always the same one.

    Args:
        source: the random numbers.
        data: one chain's data; its setting says which names are positive.
        top: numerators are drawn from 1 … top, denominators from 1 … 3.
    """
    signed = {*data["setting"]["positive"], *data["setting"]["nonnegative"]}
    chosen: dict[str, Fraction] = {}

    def value(name: str) -> Fraction:
        if name not in chosen:
            positive = name.split("[", 1)[0] in signed
            sign = 1 if positive or source.random() < 0.5 else -1
            chosen[name] = Fraction(sign * source.randint(1, top), source.randint(1, 3))
        return chosen[name]

    return value
