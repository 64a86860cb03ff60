"""Exhaustive search for small collisions of the one-feature normalised state (Σkv, Σk)."""

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

Token = tuple[int, int]
History = tuple[Token, ...]


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
