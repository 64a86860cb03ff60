"""Singular values of softmax matrices: enclosed, accepted by the checker, and what is said of them."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from counterexamples.rank._request import claim
from counterexamples.rank._spectrum import spectrum
from verify.checkers import singular_values
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

Rows = list[list[Fraction]]
ONE = Fraction(1)


def points(count: int, width: int, seed: int) -> Rows:
    source = random.Random(seed)
    return [[Fraction(source.randint(-8, 8), 8) for _ in range(width)] for _ in range(count)]


def svd(queries: Rows, keys: Rows, scale: Fraction) -> Any:
    q, k = (np.array([[float(x) for x in row] for row in rows]) for rows in (queries, keys))
    scores = np.exp(float(scale) * q @ k.T)
    return np.linalg.svd(scores / scores.sum(axis=1, keepdims=True))[1]


def obligation(queries: Rows, keys: Rows, scale: Fraction = ONE, features: int | None = None) -> Obligation:
    (part,) = claim("x", queries, keys, scale, features).parts()
    (found,) = part.obligations
    return found


@pytest.mark.parametrize(
    ("queries", "keys", "scale"),
    [
        (points(3, 1, 1), points(3, 1, 2), ONE),
        (points(8, 2, 3), points(8, 2, 4), Fraction(3, 2)),
        (points(9, 4, 5), points(5, 4, 6), Fraction(1, 2)),
        (points(4, 3, 7), points(7, 3, 8), ONE),
        (points(1, 2, 9), points(4, 2, 10), ONE),
    ],
)
def test_values_agree_with_a_decomposition_in_floats(queries: Rows, keys: Rows, scale: Fraction) -> None:
    found = spectrum(queries, keys, scale)
    for (low, high), value in zip(found.values, svd(queries, keys, scale), strict=True):
        assert low <= high
        assert float(low) - 1e-12 <= value <= float(high) + 1e-12
    check = singular_values.judge(obligation(queries, keys, scale))
    assert check.verdict is Verdict.PROVED, check.detail


def test_every_value_of_twelve_tokens_is_known_to_thirty_digits() -> None:
    queries = [[Fraction(2 * i - 11, 2)] for i in range(12)]
    keys = [[Fraction(2 * i - 11, 4)] for i in range(12)]
    found = spectrum(queries, keys, ONE)
    assert found.least == found.most == 12
    assert all((high - low) * 10**30 < low for low, high in found.values)
    check = singular_values.judge(obligation(queries, keys))
    assert check.verdict is Verdict.PROVED, check.detail


def test_equal_singular_values_are_enclosed() -> None:
    """Unit vectors: the matrix is aI + bJ, with all values but the first equal."""
    unit = [[Fraction(int(i == j)) for j in range(6)] for i in range(6)]
    found = spectrum(unit, unit, ONE)
    assert found.values[1] == found.values[5]
    assert singular_values.judge(obligation(unit, unit)).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("queries", "keys", "rank"),
    [
        ([[0, 0], [1, 2], [0, 0]], [[1, 0], [0, 1], [1, 1]], 2),
        ([[1, 0], [2, 0], [5, 0]], [[0, 1], [0, 3], [0, -1]], 1),
        ([[0, 1], [1, 1], [2, 1]], [[1, 5], [1, 7], [2, 0]], 2),
    ],
)
def test_an_exact_rank_below_the_size_is_found(queries: Any, keys: Any, rank: int) -> None:
    q, k = ([[Fraction(x) for x in row] for row in rows] for rows in (queries, keys))
    found = spectrum(q, k, ONE)
    assert (found.least, found.most) == (rank, rank)
    assert found.values[rank:] == ((0, 0),) * (3 - rank)
    assert singular_values.judge(obligation(q, k)).verdict is Verdict.PROVED


def test_floors_sum_the_values_that_are_left() -> None:
    data = obligation(points(5, 2, 1), points(5, 2, 2)).data
    values = [[Fraction(x) for x in row] for row in data["singular_values"]]
    for m, floor in enumerate(data["floors"]):
        assert floor["spectral"] == data["singular_values"][m]
        low, high = (Fraction(x) for x in floor["frobenius"])
        least, most = (sum(row[side] ** 2 for row in values[m:]) for side in (0, 1))
        assert least * (1 - Fraction(1, 10**30)) < low**2 <= least
        assert most <= high**2 < most * (1 + Fraction(1, 10**30))


def test_every_mutant_is_refuted() -> None:
    for queries, keys in ((points(4, 2, 1), points(4, 2, 2)), ([[ONE]], [[ONE]])):
        made = claim("x", queries, keys, ONE, None)
        assert len(made.mutants) == 4
        for mutant in made.mutants:
            (broken,) = mutant.obligations()
            check = singular_values.judge(broken)
            assert check.verdict is Verdict.REFUTED, mutant.name
            assert "malformed" not in check.detail


def test_one_number_of_features_is_spoken_of() -> None:
    made = claim("x", points(4, 2, 1), points(4, 2, 2), ONE, 2)
    (part,) = made.parts()
    assert "$m=2$" in part.statement
    assert "$m=1$" not in part.statement
    (all_of_them,) = claim("x", points(4, 2, 1), points(4, 2, 2), ONE, 4).parts()
    assert "4 features suffice" in all_of_them.statement
