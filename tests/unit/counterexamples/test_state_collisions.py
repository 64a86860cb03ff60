"""The exhaustive search behind the smallest collisions of the one-feature normalised state."""

from fractions import Fraction

import pytest

from counterexamples.collision import bilinear
from counterexamples.collision._search import History, collisions, same_softmax, state


def as_numbers(history: bilinear.History) -> History:
    return tuple(sorted((int(k), int(v)) for k, v in history))


def found(tokens: int, top: int, least_key: int) -> set[frozenset[History]]:
    return {frozenset(pair) for pair in collisions(tokens, top, least_key)}


def named(pair: tuple[bilinear.History, bilinear.History]) -> frozenset[History]:
    return frozenset(as_numbers(history) for history in pair)


@pytest.mark.parametrize("top", [0, 1, 2, 3, 4])
def test_one_token_never_collides(top: int) -> None:
    assert found(1, top, 0) == set()


def test_the_smallest_pair_is_among_those_with_entries_up_to_one() -> None:
    assert found(2, 0, 0) == set()
    assert named(bilinear.SMALLEST) in found(2, 1, 0)
    assert len(found(2, 1, 0)) == 2


def test_nonzero_keys_need_an_entry_of_two() -> None:
    assert found(2, 1, 1) == set()
    assert named(bilinear.SMALLEST_NONZERO) in found(2, 2, 1)


def test_the_printed_pair_has_two_states() -> None:
    states = [
        (sum(Fraction(k) * Fraction(v) for k, v in history), sum(Fraction(k) for k, _ in history))
        for history in bilinear.PRINTED
    ]
    assert states == [(0, 1), (Fraction(1, 2), 1)]


def test_the_larger_pair_collides() -> None:
    first, second = (as_numbers(history) for history in bilinear.LARGER)
    assert state(first) == state(second) == (2, 2)
    assert not same_softmax(first, second)


def test_equal_softmax_functions_are_recognised() -> None:
    assert same_softmax(((1, 0), (1, 2)), ((1, 1),))
    assert not same_softmax(((0, 0), (1, 2)), ((1, 1),))
