"""What a user's feature map may compute with, which way is taken, and what it must not do."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb, ctx

from counterexamples.collision._balls import FUNCTIONS, FeatureBall, exact
from counterexamples.collision._feature_map import of_function
from verify.model.errors import RequestError

KEYS = [[Fraction(1, 2), Fraction(-1, 3)], [Fraction(0), Fraction(2)], [Fraction(-1, 4), Fraction(1, 4)]]
Map = Callable[[list[Any]], Any]


def encloses(ball: arb, value: Any) -> bool:
    with mpmath.workprec(400):
        low, high = (mpmath.mpf(int(m)) * mpmath.mpf(2) ** int(e) for m, e in _ends(ball))
        return bool(low <= value <= high)


def _ends(ball: arb) -> list[tuple[Any, Any]]:
    with ctx.workprec(1000):
        return [end.mid().man_exp() for end in (ball.mid() - ball.rad(), ball.mid() + ball.rad())]


def test_rational_maps_are_exact() -> None:
    features = of_function(lambda key: [1, key[0] ** 2, key[0] * key[1] / 3], "f", KEYS)
    assert features.rational == [[1, x**2, x * y / 3] for x, y in KEYS]
    assert "fractions" in features.how


def test_equality_is_that_of_numbers_not_of_symbols() -> None:
    features = of_function(lambda key: [int(key[0] == 0), 1], "f", KEYS)
    assert features.rational == [[0, 1], [1, 1], [0, 1]]


def test_sympy_functions_are_enclosed() -> None:
    def with_sympy(key: list[Any]) -> list[Any]:
        x, y = key
        root = sympy.sqrt(2) * x
        return [
            sympy.exp(x) * sympy.pi,
            root,
            abs(y),
            sympy.Max(x, sympy.sin(y)),
            (x + 2) ** sympy.Rational(1, 3),
        ]

    features = of_function(with_sympy, "f", KEYS)
    assert features.rational is None
    assert "enclosed" in features.how
    with mpmath.workprec(400):
        for row, (x, y) in zip(features.balls(256), KEYS, strict=True):
            x, y = (mpmath.mpf(v.numerator) / v.denominator for v in (x, y))
            values = [mpmath.exp(x) * mpmath.pi, mpmath.sqrt(2) * x, abs(y)]
            values += [max(x, mpmath.sin(y)), mpmath.cbrt(x + 2)]
            for ball, value in zip(row, values, strict=True):
                assert encloses(ball, value)
                assert ball.rad() < arb(2) ** -240


def test_maps_on_balls_are_enclosed() -> None:
    features = of_function(lambda key: [x.exp() if x < 0 else x + 1 for x in key], "elu", KEYS)
    assert features.how == "computed on balls"
    first, second = features.balls(300)[0]
    with mpmath.workprec(400):
        assert encloses(first, mpmath.mpf(3) / 2)
        assert encloses(second, mpmath.exp(mpmath.mpf(-1) / 3))


def test_numpy_weights_count_with_their_binary_values() -> None:
    weights = np.array([[0.1, 0.5], [2.0, -0.3]])

    def random_features(key: list[Any]) -> Any:
        return np.maximum(weights @ np.array(key, dtype=object), 0)

    keys = [[Fraction(1, 2), Fraction(-1, 4)], [Fraction(0), Fraction(2)]]
    features = of_function(random_features, "f", keys)
    expected = [
        [max(sum(Fraction(w) * x for w, x in zip(row, key, strict=True)), 0) for row in weights]
        for key in keys
    ]
    assert features.rational == expected
    exponentials = of_function(lambda key: np.exp(weights @ np.array(key, dtype=object)), "f", keys)
    assert exponentials.rational is None


def test_algebra_of_balls_is_that_of_numbers() -> None:
    x, y = Fraction(3, 7), Fraction(-5, 11)
    with ctx.workprec(128):
        a, b = FeatureBall(x), FeatureBall(y)
        pairs = [
            (a + b, x + y), (1 + a, 1 + x), (a - b, x - y), (2 - a, 2 - x), (a * b, x * y), (3 * a, 3 * x),
            (a / b, x / y), (1 / b, 1 / y), (a**3, x**3), (b**-2, y**-2), (-a, -x), (abs(b), -y), (a**0, 1),
        ]  # fmt: skip
        for found, value in pairs:
            with mpmath.workprec(400):
                value = Fraction(value)
                assert encloses(found.ball, mpmath.mpf(value.numerator) / value.denominator)
        assert a > b
        assert not a < b
        assert a >= b
        assert b <= a
        assert a != b
        assert bool(a)
        assert max(a, 0) is a


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_are_those_of_their_names(name: str) -> None:
    x = 1.5 if name == "acosh" else 0.5
    with ctx.workprec(128):
        found = getattr(FeatureBall(x), name)().ball
    with mpmath.workprec(400):
        assert encloses(found, getattr(mpmath, name)(mpmath.mpf(x)))


def test_an_open_comparison_is_refused() -> None:
    with pytest.raises(RequestError, match="open at this precision"):
        _ = FeatureBall(Fraction(1, 3)) < FeatureBall(Fraction(1, 3))
    with pytest.raises(RequestError, match="open at this precision"):
        _ = FeatureBall(Fraction(1, 3)) == Fraction(1, 3)


def test_the_exact_value_of_a_point() -> None:
    assert exact(arb(0.375)) == Fraction(3, 8)


def _raises(key: list[Any]) -> list[Any]:
    raise KeyError("no such table")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda key: [math.exp(x) for x in key], "turns a ball into a float"),
        (lambda key: [key[5]], "raises IndexError on token 1, key (1/2, -1/3)"),
        (_raises, "raises KeyError on token 1"),
        (lambda key: 3, "raises TypeError"),
        (lambda key: [1 / key[0]], "feature 1 of f on token 2, key (0, 2) is not a finite real number"),
        (lambda key: [key[0].log()], "not a finite real number"),
        (lambda key: [float("nan")], "nan is not a finite number"),
        (lambda key: ["one"], "'one' is not a rational number"),
        (lambda key: [1] * (1 + (key[0] > 0)), "the same number of features"),
        (lambda key: [], "the same number of features, at least one"),
        (lambda key: [key[0].softplus()], "numbers have no softplus; they have acos"),
        (lambda key: [sympy.Symbol("x")], "x is not a number"),
    ],
)
def test_a_map_that_gives_no_features_is_one_sentence(function: Map, said: str) -> None:
    with pytest.raises(RequestError) as problem:
        of_function(function, "f", KEYS)
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)
