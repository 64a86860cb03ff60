"""The searches behind the collisions: all small pairs, null spaces of features, Newton's method."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from itertools import count as whole
from math import exp
from typing import Any

from counterexamples.collision._gated_box import Box, on_grid
from counterexamples.collision._nullspace import null_vector
from counterexamples.collision.gated import CHANGED, FIRST, GRID, NEXT_TOKEN, UNKNOWN, layer

Token = tuple[int, int]
History = tuple[Token, ...]

LARGEST = 3
"""Largest entry that is tried before histories get another token."""
ROUNDING = 1e-12
"""What is smaller than this, relative to its terms, is taken for 0; the claim certifies the rest."""
KEYS = (0, 1, 2)
"""With the features (1, k) three keys are the fewest whose features depend on one another."""


def state(history: History) -> tuple[int, int]:
    """(Σkv, Σk) of pairs (key, value)."""
    return sum(k * v for k, v in history), sum(k for k, _ in history)


def softmax_profile(history: History) -> dict[int, tuple[int, int]]:
    """For each key the number of tokens and the sum of their values: all that softmax attention reads."""
    profile: dict[int, tuple[int, int]] = {}
    for k, v in history:
        count, total = profile.get(k, (0, 0))
        profile[k] = (count + 1, total + v)
    return profile


def same_softmax(first: History, second: History) -> bool:
    """Whether Σe^{qk}v / Σe^{qk} agree for every q: cross products, as polynomials in e^q, are equal."""
    one, two = softmax_profile(first), softmax_profile(second)
    coefficients: dict[int, int] = {}
    for (k, (count, total)), (other, (others, sums)) in product(one.items(), two.items()):
        coefficients[k + other] = coefficients.get(k + other, 0) + total * others - sums * count
    return not any(coefficients.values())


def collisions(tokens: int, top: int, least_key: int) -> Iterator[tuple[History, History]]:
    """All pairs of histories with one state, a nonzero normaliser and different softmax functions.

    Keys run from ``least_key`` to ``top``, values from 0 to ``top``.
    """
    pairs = list(product(range(least_key, top + 1), range(top + 1)))
    histories = list(combinations_with_replacement(pairs, tokens))
    for first, second in combinations(histories, 2):
        if state(first) == state(second) and state(first)[1] and not same_softmax(first, second):
            yield first, second


def smallest() -> list[dict[str, Any]]:
    """The first pair of equally many tokens that collides, with keys from 0 on and with keys from 1 on."""
    return [_as_data(_first(least_key)) for least_key in (0, 1)]


def _first(least_key: int) -> tuple[History, History]:
    sizes = ((tokens, top) for tokens in whole(1) for top in range(LARGEST + 1))
    return next(
        pair for tokens, top in sizes for pair in sorted(collisions(tokens, top, least_key), key=_traces)
    )


def _traces(pair: tuple[History, History]) -> tuple[bool, tuple[History, History]]:
    """Pairs whose common state is 0 last: what they hold in common has left no trace at all."""
    return not state(pair[0])[0], pair


def _as_data(pair: tuple[History, History]) -> dict[str, Any]:
    first, second = (
        {"keys": [[str(k)] for k, _ in history], "values": [[str(v)] for _, v in history]} for history in pair
    )
    return {"first": {**first, "features": first["keys"]}, "second": {**second, "features": second["keys"]}}


def null_space() -> list[dict[str, Any]]:
    """Features (1, k), values 0: the first whole query that sees the collision."""
    z = _null()
    return [_moved(z, next(query for query in whole(0) if _seen(z, query)))]


def visible() -> list[dict[str, Any]]:
    """The same collision, asked along the longest key: the first multiple beyond the bound."""
    z = _null()
    place = max((t for t, weight in enumerate(z) if weight), key=lambda t: abs(KEYS[t]))
    others = [(k, weight) for t, (k, weight) in enumerate(zip(KEYS, z, strict=True)) if weight and t != place]
    lead = min(KEYS[place] * (KEYS[place] - k) for k, _ in others)
    reach = sum(abs(weight) for _, weight in others) / abs(z[place])
    factor = next(n for n in whole(1) if exp(n * lead) > reach)
    return [_moved(z, factor * KEYS[place])]


def _null() -> list[int]:
    """The null vector of the features (1, k), its first entry positive."""
    z = null_vector([[Fraction(1), Fraction(k)] for k in KEYS])
    return z if next(weight for weight in z if weight) > 0 else [-weight for weight in z]


def _seen(z: list[int], query: int) -> bool:
    """Whether a(q)·z is off 0, in floating point."""
    terms = [weight * exp(query * k) for k, weight in zip(KEYS, z, strict=True)]
    return abs(sum(terms)) > ROUNDING * sum(map(abs, terms))


def _moved(z: list[int], query: int) -> dict[str, Any]:
    """Values 0 and values z, one state, and the query."""
    shared = {"features": [["1", str(k)] for k in KEYS], "keys": [[str(k)] for k in KEYS]}
    return {
        "first": {**shared, "values": [["0"] for _ in KEYS]},
        "second": {**shared, "values": [[str(weight)] for weight in z]},
        "z": [str(weight) for weight in z],
        "w": ["1"],
        "query": [str(query)],
    }


def gated() -> list[dict[str, Any]]:
    """Newton's method for GDN and KDA from the first history's own entries, and the box that is certified."""
    start = [CHANGED, *FIRST[1:]]
    found = (
        Box(layer(mechanism), FIRST, start, UNKNOWN).collision([NEXT_TOKEN]) for mechanism in ("gdn", "kda")
    )
    return [
        {
            "first": [list(map(str, row)) for row in box.first],
            "second": [[str(on_grid(x, GRID)) for x in row] for row in box.second],
            "unknown": [list(place) for place in box.unknown],
            "radius": str(box.radius),
        }
        for box in found
    ]
