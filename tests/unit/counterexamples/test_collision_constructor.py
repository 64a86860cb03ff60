"""Collisions constructed for given features are accepted by the independent checkers."""

import random
from fractions import Fraction
from typing import Any

import pytest

from counterexamples.collision import _enclosed
from counterexamples.collision._construct import collide, scaled
from counterexamples.collision._feature_map import of_function
from counterexamples.collision._features import exactly
from counterexamples.collision._nullspace import null_vector
from counterexamples.collision._query import BALLS, separating, spread
from counterexamples.collision._request import claim
from verify.checkers import enclosed_collision, state_collision
from verify.model.errors import RequestError, SearchEnded
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

Rows = list[list[Fraction]]


def random_features(tokens: int, width: int, seed: int) -> Rows:
    source = random.Random(seed)
    return [
        [Fraction(source.randint(-9, 9), source.randint(1, 5)) for _ in range(width)] for _ in range(tokens)
    ]


def judged(kind: str, data: dict[str, Any]) -> Check:
    checker = state_collision if kind == "state-collision" else enclosed_collision
    return checker.judge(Obligation(kind, "", "E", data))


def exponentials(key: list[Any]) -> list[Any]:
    return [x.exp() for x in key] + [(key[0] * key[1]).tanh()]


@pytest.mark.parametrize(("tokens", "width"), [(2, 1), (5, 4), (9, 4), (65, 64)])
def test_every_feature_matrix_with_more_tokens_collides(tokens: int, width: int) -> None:
    rows = random_features(tokens, width, tokens)
    data = collide(rows, null_vector(rows), spread(tokens, 2), 3)
    assert judged("state-collision", data).verdict is Verdict.PROVED
    assert max(abs(Fraction(x)) for x in data["z"]) < 16


def test_dependent_features_collide_even_with_few_tokens() -> None:
    assert null_vector([[Fraction(x) for x in row] for row in ((1, 2, 3), (2, 4, 6))]) == [-2, 1]


def test_a_token_without_features_is_a_null_vector() -> None:
    assert null_vector([[Fraction(x)] for x in (0, 1, 2)]) == [1, 0, 0]
    assert null_vector([[Fraction(x)] for x in (1, 0, 2)]) == [0, 1, 0]


def test_a_null_vector_has_no_common_divisor() -> None:
    rows = [[Fraction(1, 3), Fraction(0)], [Fraction(0), Fraction(1, 2)], [Fraction(2, 3), Fraction(5)]]
    assert null_vector(rows) == [-2, -10, 1]


def test_independent_features_are_refused() -> None:
    with pytest.raises(RequestError, match="no collision is forced while T ≤ m; give at least 4 tokens"):
        null_vector([[Fraction(x) for x in row] for row in ((1, 0, 0), (0, 1, 0))])


def test_large_null_vectors_are_scaled_by_a_power_of_two() -> None:
    assert scaled([3, -15]) == [3, -15]
    assert scaled([3, -16]) == [Fraction(3, 2), -8]


@pytest.mark.parametrize(("tokens", "width"), [(3, 1), (600, 1), (9, 2), (40, 16)])
def test_made_up_keys_are_distinct_and_small(tokens: int, width: int) -> None:
    keys = spread(tokens, width)
    assert len(set(map(tuple, keys))) == tokens
    assert all(abs(x) <= 1 and len(key) == width for key in keys for x in key)


def test_the_gap_is_below_the_exact_one_and_near() -> None:
    import math

    keys = [[Fraction(0)], [Fraction(1)]]
    (query,), gap = separating(keys, [BALLS.number(x) for x in (1, -1)], Fraction(2))
    exact = 2 * abs(math.tanh(float(query) / 2))
    assert exact * (1 - 1e-5) < gap < exact * (1 + 1e-12)


def test_a_null_vector_that_no_query_sees_ends_the_search() -> None:
    keys = [[Fraction(1)], [Fraction(2)]]
    with pytest.raises(SearchEnded, match="queries certainly tells"):
        separating(keys, [BALLS.number(0), BALLS.number(0)], Fraction(1))


@pytest.mark.parametrize("tokens", [4, 7])
def test_features_known_in_balls_collide(tokens: int) -> None:
    keys = spread(tokens, 2)
    features = of_function(exponentials, "f", keys)
    assert features.rational is None
    data = _enclosed.collide(features, keys, 2)
    assert len(data["pivots"]) == 3
    check = judged("enclosed-collision", data)
    assert check.verdict is Verdict.PROVED, check.detail


def test_balls_around_rational_features_give_the_rational_null_vector() -> None:
    rows, keys = random_features(6, 5, 1), spread(6, 2)
    data = _enclosed.collide(exactly("", rows), keys, 1)
    assert judged("enclosed-collision", data).verdict is Verdict.PROVED
    exact = null_vector(rows)
    last = next(t for t in range(6) if t not in data["pivots"])
    for t in range(6):
        found = Fraction(int(data["z"][t]), int(data["z"][last]))
        assert abs(found - Fraction(exact[t], exact[last])) < Fraction(1, 2**100)


def test_enclosed_features_of_too_few_tokens_are_refused() -> None:
    keys = spread(3, 2)
    with pytest.raises(RequestError, match="T = 3 tokens and m = 3 features"):
        _enclosed.collide(of_function(exponentials, "f", keys), keys, 1)


def test_features_that_balls_cannot_tell_from_dependent_ones_end_the_search() -> None:
    keys = spread(4, 2)
    features = of_function(lambda key: [key[0].exp(), key[0].exp() * 2, key[1]], "f", keys)
    with pytest.raises(SearchEnded, match="256, 512, 1024, 2048 bits"):
        _enclosed.collide(features, keys, 1)


def test_equal_keys_are_refused() -> None:
    keys = [[Fraction(1)], [Fraction(2)], [Fraction(1)]]
    with pytest.raises(RequestError, match="tokens 1 and 3 have one key"):
        claim("x", "rows", exactly("", random_features(3, 2, 1)), keys, 1)


@pytest.mark.parametrize("rows", [random_features(3, 2, 1), [[Fraction(0)], [Fraction(0)]]])
def test_every_mutant_of_an_exact_claim_is_refuted(rows: Rows) -> None:
    made = claim("x", "rows", exactly("", rows), spread(len(rows), 2), 2)
    assert len(made.mutants) == 3
    for mutant in made.mutants:
        (obligation,) = mutant.obligations()
        assert judged("state-collision", dict(obligation.data)).verdict is Verdict.REFUTED, mutant.name


def test_every_mutant_of_an_enclosed_claim_is_refuted() -> None:
    keys = spread(4, 2)
    made = claim("x", "f", of_function(exponentials, "f", keys), keys, 2)
    assert len(made.mutants) == 3
    for mutant in made.mutants:
        (obligation,) = mutant.obligations()
        check = judged("enclosed-collision", dict(obligation.data))
        assert check.verdict is Verdict.REFUTED, mutant.name
        assert "malformed" not in check.detail
