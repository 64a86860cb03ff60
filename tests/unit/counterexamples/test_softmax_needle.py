"""The adversary deceives every deterministic algorithm that leaves a score unread, and says why it cannot."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterexamples.softmax import _probers
from counterexamples.softmax._adversary import Algorithm, Oracle, deceive
from verify.checkers import unread_score
from verify.model.errors import RequestError
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

Values = Sequence[Sequence[Fraction]]


def basis(size: int) -> list[list[int]]:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def accepted(data: dict[str, object]) -> bool:
    return unread_score.judge(Obligation("unread-score", "", "E", data)).verdict is Verdict.PROVED


@pytest.mark.parametrize("size", [6, 9])
@pytest.mark.parametrize("algorithm", [_probers.window, _probers.greedy, _probers.all_but_one])
def test_the_shipped_algorithms_are_deceived(algorithm: Algorithm, size: int) -> None:
    data = deceive(algorithm, basis(size), "7/10")
    assert len(data["read"]) < size * size
    assert accepted(data)


def reading(pairs: list[tuple[int, int]], seed: int) -> Algorithm:
    """Reads the given pairs in an order that depends on what it sees, and answers with made-up numbers."""

    def algorithm(oracle: Oracle, values: Values) -> list[list[Fraction]]:
        seen, left = Fraction(seed), list(pairs)
        while left:
            query, key = left.pop(int(seen) % len(left))
            seen = 3 * seen + oracle(query, key) + 1
        return [[seen % 7 / 7 for _ in row] for row in values]

    return algorithm


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 5), st.integers(0, 10**6), st.data())
def test_any_deterministic_algorithm_is_deceived(size: int, seed: int, data: st.DataObject) -> None:
    cells = [(i, j) for i in range(size) for j in range(size)]
    pairs = data.draw(st.lists(st.sampled_from(cells), unique=True, max_size=size * size - 1))
    source = random.Random(seed)
    scores = [[Fraction(source.randint(-4, 4), 4) for _ in range(size)] for _ in range(size)]
    values = [[i, (-1) ** i] for i in range(size)]
    # Scores within 2 of one another: no weight is above 0.89, so every value is farther than 1/100.
    found = deceive(reading(pairs, seed), values, "1/100", scores)
    assert accepted(found)
    assert tuple(found["pair"]) not in pairs


def everything(oracle: Oracle, values: Values) -> list[list[Fraction]]:
    size = len(values)
    total = sum(oracle(i, j) for i in range(size) for j in range(size))
    return [[total for _ in row] for row in values]


def test_an_algorithm_that_reads_everything_is_spared() -> None:
    with pytest.raises(RequestError, match="read all 16 scores"):
        deceive(everything, basis(4), "1/2")


def test_a_random_algorithm_is_refused() -> None:
    tosses = count()

    def tossing(oracle: Oracle, values: Values) -> list[list[Fraction]]:
        return [[oracle(0, 0) + next(tosses)] * len(values[0]) for _ in values]

    with pytest.raises(RequestError, match="must be deterministic"):
        deceive(tossing, basis(3), "1/2")


def test_equal_values_cannot_be_told_apart() -> None:
    with pytest.raises(RequestError, match="values that differ more"):
        deceive(_probers.window, [[1]] * 6, "1/10")


def test_a_gap_at_the_very_limit_is_refused() -> None:
    limit = Fraction(5, 6) - Fraction(1, 2**240)
    with pytest.raises(RequestError, match="ask for less"):
        deceive(_probers.window, basis(6), limit)


def test_reads_outside_the_scores_are_refused() -> None:
    def astray(oracle: Oracle, values: Values) -> list[list[Fraction]]:
        return [[oracle(0, len(values))] for _ in values]

    with pytest.raises(RequestError, match="outside 3×3"):
        deceive(astray, basis(3), "1/2")


def test_outputs_of_another_shape_are_refused() -> None:
    with pytest.raises(RequestError, match="one output per query"):
        deceive(lambda oracle, values: [[oracle(0, 0)]], basis(3), "1/2")
