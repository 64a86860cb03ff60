"""Collisions constructed for given features are accepted by the independent checker."""

import random
from fractions import Fraction

import pytest

from counterexamples.collision._construct import collide, null_vector
from verify.checkers import state_collision
from verify.model.errors import RequestError
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict


def accepted(data: dict[str, object]) -> bool:
    return state_collision.judge(Obligation("state-collision", "", "E", data)).verdict is Verdict.PROVED


def random_features(tokens: int, width: int, seed: int) -> list[list[Fraction]]:
    source = random.Random(seed)
    return [
        [Fraction(source.randint(-9, 9), source.randint(1, 5)) for _ in range(width)] for _ in range(tokens)
    ]


@pytest.mark.parametrize(("tokens", "width"), [(2, 1), (5, 4), (9, 4), (65, 64)])
def test_every_feature_matrix_with_more_tokens_collides(tokens: int, width: int) -> None:
    keys = [[Fraction(t, 8), Fraction(t * t % 7, 4)] for t in range(tokens)]
    values = [[t, -t, 1] for t in range(tokens)]
    data = collide(random_features(tokens, width, tokens), keys, values, [1, 0, "2/3"], [1, "-1/2"])
    assert accepted(data)


def test_a_feature_map_is_applied_to_the_keys() -> None:
    def squares(key: object) -> list[Fraction]:
        x, y = (Fraction(item) for item in key)  # type: ignore[attr-defined]
        return [x * x, x * y, y * y]

    keys = [[1, 0], [0, 1], [1, 1], [1, -2]]
    data = collide(squares, keys, [[0]] * 4, [1], [1, "1/3"])
    assert data["first"]["features"][3] == ["1", "-2", "4"]
    assert accepted(data)


def test_a_visible_query_is_found() -> None:
    data = collide([[1, 0], [1, 1], [1, 2]], [[0, 1], [1, 0], [2, 2]], [[0], [0], [0]], [1])
    assert any(entry != "0" for entry in data["query"])
    assert accepted(data)


def test_dependent_features_collide_even_with_few_tokens() -> None:
    assert null_vector([[1, 2, 3], [2, 4, 6]]) == [-2, 1]


def test_independent_features_are_refused() -> None:
    with pytest.raises(RequestError, match="more tokens than features"):
        null_vector([[1, 0, 0], [0, 1, 0]])


def test_a_blind_query_is_refused() -> None:
    with pytest.raises(RequestError, match="give another"):
        collide([[1, 0], [1, 1], [1, 2]], [[0], [1], [2]], [[0], [0], [0]], [1], [0])


def test_a_direction_of_zero_is_refused() -> None:
    with pytest.raises(RequestError, match="give another"):
        collide([[1], [1]], [[0], [1]], [[0], [0]], [0], [1])
