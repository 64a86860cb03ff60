"""Two histories with one linear-attention state, for exact features: data of a ``state-collision``."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from counterexamples.collision._query import BALLS, separating

LARGEST_VALUE_BITS = 4

Rows = Sequence[Sequence[Fraction]]


def collide(features: Rows, null: Sequence[int], keys: Rows, width: int) -> dict[str, Any]:
    """Two histories with values V and V + z wᵀ, one state, and two softmax outputs at a query.

    V is the part of z below 0, with its sign changed, in every coordinate; w is 1 in every coordinate. z is
    the null vector, divided by a power of two where it would exceed 16.

    Args:
        features: T×m.
        null: T integers, a null vector of featuresᵀ.
        keys: T×K, distinct.
        width: V, the width of the values.

    Raises:
        SearchEnded: no query tried separates the two histories.
    """
    z = scaled(null)
    query, gap = separating(keys, [BALLS.number(x) for x in z], Fraction(1))
    shared = {"features": text(features), "keys": text(keys)}
    return {
        "first": {**shared, "values": text([[max(-x, Fraction(0))] * width for x in z])},
        "second": {**shared, "values": text([[max(x, Fraction(0))] * width for x in z])},
        "z": [str(x) for x in z],
        "w": ["1"] * width,
        "query": [str(x) for x in query],
        "gap": str(gap),
    }


def scaled(z: Sequence[int]) -> list[Fraction]:
    """Divided by the power of two that brings the largest entry below 16, if it is not there."""
    bits = max(0, max(abs(x) for x in z).bit_length() - LARGEST_VALUE_BITS)
    return [Fraction(x, 1 << bits) for x in z]


def text(rows: Rows) -> list[list[str]]:
    """A matrix as certificates hold it."""
    return [[str(x) for x in row] for row in rows]
