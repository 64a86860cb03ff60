"""The expansions against the mechanisms as they are defined once, in exact and in ball arithmetic."""

import random
from fractions import Fraction
from typing import Any

import flint
import pytest

from counterexamples.gdn._construct import states
from derivations.gdn.definition import recurrence
from derivations.softmax.definition import attend
from verify.numbers.ball import Ball
from verify.numbers.exact import Exact

EXACT, BALL = Exact(), Ball()
Rows = list[list[Fraction]]


def rows(source: random.Random, tokens: int, width: int, unit: int = 4) -> Rows:
    return [[Fraction(source.randint(-9, 9), unit) for _ in range(width)] for _ in range(tokens)]


def mean(items: Rows) -> list[Fraction]:
    return [sum(column, Fraction(0)) / len(items) for column in zip(*items, strict=True)]


def minus(left: list[Fraction], right: list[Fraction]) -> list[Fraction]:
    return [x - y for x, y in zip(left, right, strict=True)]


def column(items: list[Fraction]) -> Any:
    return EXACT.matrix([[item] for item in items])


@pytest.mark.parametrize("seed", range(3))
def test_without_the_erase_term_the_state_is_the_covariance(seed: int) -> None:
    source = random.Random(seed)
    keys, values = rows(source, 6, 3), rows(source, 6, 2)
    for time, state in enumerate(states(keys, values, erase=False), start=1):
        centre_k, centre_v = mean(keys[:time]), mean(values[:time])
        total = EXACT.zeros(3, 2)
        for key, value in zip(keys[:time], values[:time], strict=True):
            deviation = EXACT.outer(column(minus(key, centre_k)), column(minus(value, centre_v)))
            total = EXACT.add(total, deviation)
        assert state == EXACT.scale(EXACT.number(Fraction(1, time)), total)


@pytest.mark.parametrize("seed", range(3))
def test_the_form_is_the_defined_gdn_with_a_lengthened_key(seed: int) -> None:
    source = random.Random(seed)
    keys, values = rows(source, 6, 3), rows(source, 6, 2)
    lengthened, residuals, decays, strengths = [], [], [], []
    for time in range(2, 7):
        centred = minus(keys[time - 1], mean(keys[:time]))
        lengthened.append(column([entry * time / (time - 1) for entry in centred]))
        residuals.append(column(minus(values[time - 1], mean(values[: time - 1]))))
        decays.append(EXACT.number(Fraction(time - 1, time)))
        strengths.append(EXACT.number(Fraction(time - 1, time**2)))
    _, state = recurrence(
        EXACT,
        [EXACT.zeros(3, 1)] * 5,
        lengthened,
        residuals,
        decays,
        strengths,
        scale=EXACT.number(1),
        state=EXACT.zeros(3, 2),
    )
    assert state == states(keys, values)[-1]


def test_one_step_of_the_true_query_differs_from_the_affine_form_by_the_quadratic_term() -> None:
    source = random.Random(9)
    keys, values, query = rows(source, 3, 2), rows(source, 3, 1), rows(source, 1, 2)[0]
    output = values[0][0]
    affine = [mean(values[:1])[0]]
    for time in (2, 3):
        centred = minus(keys[time - 1], mean(keys[:time]))
        share = (1 + sum(x * y for x, y in zip(centred, query, strict=True))) / time
        output += share * (values[time - 1][0] - output)
        state = states(keys[:time], values[:time], erase=False)[-1]
        read = sum(EXACT.entry(state, c, 0) * EXACT.number(query[c]) for c in range(2))
        affine.append(Fraction(str(EXACT.number(mean(values[:time])[0]) + read)))
        if time == 2:
            assert output == affine[1]
            before = affine[1] - mean(values[:2])[0]
    centred = minus(keys[2], mean(keys))
    along = sum(x * y for x, y in zip(centred, query, strict=True))
    assert output == affine[2] - along * before / 3
    assert along * before != 0


@pytest.mark.parametrize("seed", range(5))
def test_the_self_weight_is_within_its_bound(seed: int) -> None:
    """The weight is the softmax output for the values 0, …, 0, 1."""
    source = random.Random(seed)
    tokens = 5
    keys = rows(source, tokens, 2, unit=40)
    query = rows(source, 1, 2, unit=8)[0]
    scores = [sum(x * y for x, y in zip(key, query, strict=True)) for key in keys]
    largest = max(abs(score - scores[-1]) for score in scores)
    assert 0 < largest < 1
    values = [[Fraction(int(place == tokens - 1))] for place in range(tokens)]
    weight = attend(
        BALL,
        BALL.matrix([[entry] for entry in query]),
        [BALL.matrix([[entry] for entry in key]) for key in keys],
        [BALL.matrix([value]) for value in values],
        scale=BALL.number(1),
    )[0, 0]
    first_order = (1 + scores[-1] - sum(scores) / tokens) / tokens
    bound = largest**2 / (1 - largest) / tokens
    error = abs(weight - flint.arb(flint.fmpq(first_order.numerator, first_order.denominator)))
    assert error < flint.arb(flint.fmpq(bound.numerator, bound.denominator))


def test_the_least_squares_query_beats_its_neighbours_on_a_symmetric_distribution() -> None:
    """q uniform on ±2e_i in four channels: mean 0, covariance I, symmetric, so s = 1."""
    kappa = [Fraction(x) for x in (1, -2, 0, 3)]
    column_a = [Fraction(x) for x in (2, 1, -1, 1)]

    def cost(guess: list[Fraction]) -> Fraction:
        total = Fraction(0)
        for place in range(4):
            for sign in (-2, 2):
                along, read = sign * kappa[place], sign * column_a[place]
                held = sum(x * y for x, y in zip(column_a, guess, strict=True))
                total += (1 + along) ** 2 * (read - held) ** 2 / 8
        return total

    square = sum(x * x for x in kappa)
    best = [2 * x / (1 + square) for x in kappa]
    overlap = sum(x * y for x, y in zip(column_a, kappa, strict=True))
    for place in range(4):
        for step in (Fraction(1, 10), Fraction(-1, 10)):
            moved = [x + step * int(at == place) for at, x in enumerate(best)]
            assert cost(moved) - cost(best) == (1 + square) * (step * column_a[place]) ** 2
    gap = overlap - 2 * overlap / (1 + square)
    assert cost(kappa) - cost(best) == (1 + square) * gap**2 > 0
