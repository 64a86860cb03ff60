"""Random ±1 address keys with small inner products, found by trying seeded draws."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil, log

from verify.model.errors import RequestError

TRIES = 1000


def width(n: int, within: Fraction) -> int:
    """The least K with n(n − 1)·e^{−ε²K/2} < 1, by the formula K > 2·ln(n(n − 1))/ε² (float: a proposal"
    " only)."""
    return ceil(2 * log(n * (n - 1)) / float(within) ** 2)


def codes(n: int, entries: int, within: Fraction, seed: int) -> list[list[int]]:
    """n keys of ±1 whose inner products are at most ``within``·entries.

    Raises:
        RequestError: none of ``TRIES`` seeded draws will do.
    """
    source = random.Random(seed)
    for _ in range(TRIES):
        keys = [[source.choice((-1, 1)) for _ in range(entries)] for _ in range(n)]
        if all(abs(_product(*pair)) <= within * entries for pair in combinations(keys, 2)):
            return keys
    raise RequestError(f"no draw of {n} keys of {entries} entries is within {within}; give more entries")


def _product(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(one, other, strict=True))
