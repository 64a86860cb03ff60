"""The formulas of the softmax claims, transcribed once more, against search, enumeration and balls."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import flint
import mpmath
import pytest

from derivations.softmax.definition import weights
from verify.numbers.ball import Ball

BALLS = Ball(200)


def softmax(logits: Sequence[Fraction]) -> list[Any]:
    return list(weights(BALLS, BALLS.matrix([[x] for x in logits])).entries())


def ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def scores_of(seed: int) -> list[Fraction]:
    source = random.Random(seed)
    return sorted((Fraction(source.randint(-30, 30), 10) for _ in range(source.randint(1, 7))), reverse=True)


def points_of_the_simplex(size: int, seed: int) -> list[list[Fraction]]:
    source, points = random.Random(seed), []
    for _ in range(40):
        parts = [source.randint(0, 5) if source.random() < 0.7 else 0 for _ in range(size)]
        parts[source.randrange(size)] += 1
        points.append([Fraction(part, sum(parts)) for part in parts])
    return points


def sparsemax(scores: Sequence[Fraction]) -> list[Fraction]:
    support = max(k for k in range(1, len(scores) + 1) if 1 + k * scores[k - 1] > sum(scores[:k]))
    threshold = (sum(scores[:support]) - 1) / support
    return [max(Fraction(0), score - threshold) for score in scores]


@pytest.mark.parametrize("seed", range(25))
def test_sparsemax_beats_every_other_point_by_half_the_squared_distance(seed: int) -> None:
    scores = scores_of(seed)

    def cost(a: Sequence[Fraction]) -> Fraction:
        return sum((x * x / 2 - x * s for x, s in zip(a, scores, strict=True)), Fraction(0))

    best = sparsemax(scores)
    assert sum(best) == 1
    for other in points_of_the_simplex(len(scores), seed):
        apart = sum((x - y) ** 2 for x, y in zip(best, other, strict=True))
        assert cost(other) - cost(best) >= apart / 2


def entmax(scores: Sequence[Fraction]) -> list[Any]:
    z = [score / 2 for score in scores]
    support = max(k for k in range(1, len(z) + 1) if sum((x - z[k - 1]) ** 2 for x in z[:k]) < 1)
    mean = sum(z[:support]) / support
    spread = (1 - sum((x - mean) ** 2 for x in z[:support])) / support
    threshold = ball(mean) - ball(spread).sqrt()
    return [max(flint.arb(0), ball(x) - threshold) ** 2 for x in z]


@pytest.mark.parametrize("seed", range(25))
def test_entmax_beats_every_other_point(seed: int) -> None:
    scores = scores_of(seed)

    def cost(a: Sequence[flint.arb]) -> flint.arb:
        terms = (-x * ball(s) + (x * x.sqrt() - x) * 4 / 3 for x, s in zip(a, scores, strict=True))
        return sum(terms, flint.arb(0))

    best = entmax(scores)
    assert sum(best, flint.arb(0)).overlaps(flint.arb(1))
    for other in points_of_the_simplex(len(scores), seed):
        difference = cost([ball(x) for x in other]) - cost(best)
        assert not difference < 0


def suffices(tokens: int, odds: Fraction) -> bool:
    """Whether a lead of 2·ln N keeps the share: 1/(1 + (N − 1)/N²) >= ω/(1 + ω)."""
    return Fraction(tokens**2, tokens**2 + tokens - 1) >= odds / (1 + odds)


@pytest.mark.parametrize("share", ["1/2", "4/5", "5/6", "9/10", "19/20", "99/100", "123/130"])
def test_the_first_number_of_tokens_from_which_twice_the_logarithm_suffices(share: str) -> None:
    odds = Fraction(share) / (1 - Fraction(share))
    failing = [tokens for tokens in range(2, 400) if not suffices(tokens, odds)]
    if odds <= 4:
        assert failing == []
        return
    first = failing[-1] + 1
    with mpmath.workdps(40):
        root = (mpmath.mpf(odds.numerator) / odds.denominator) / 2
        root += mpmath.sqrt(root * root - 2 * root)
        assert first == int(mpmath.ceil(root))
    assert odds - 2 < first < odds
    if odds.denominator == 1:
        assert first == odds - 1


@pytest.mark.parametrize("seed", range(15))
def test_weights_keep_to_the_bounds_of_dilution_and_of_hot_softmax(seed: int) -> None:
    scores = scores_of(seed)
    spread, size = scores[0] - scores[-1], len(scores)
    for weight in softmax(scores):
        assert not weight < (-ball(spread)).exp() / size
        assert not weight > ball(spread).exp() / size
    temperature = spread + Fraction(3, 2)
    for weight in softmax([score / temperature for score in scores]):
        assert not weight < ball(Fraction(3, 2) / temperature) / size
        assert not weight > ball(temperature / Fraction(3, 2)) / size


@pytest.mark.parametrize("temperature", ["2", "1/2", "1/10"])
def test_cold_weights_keep_to_their_rate(temperature: str) -> None:
    tau, scores = Fraction(temperature), [Fraction(2)] * 3 + [Fraction(1), Fraction(-1, 2)]
    excess = 1 / softmax([score / tau for score in scores])[0] - 3
    assert not excess < 0
    assert not excess > 2 * ball(-1 / tau).exp()
    assert not excess > ball(2 * tau)


LOPSIDED = ((Fraction(2), Fraction(1, 5)), (Fraction(-1, 2), Fraction(4, 5)))
FAIR = ((Fraction(1), Fraction(1, 2)), (Fraction(-1), Fraction(1, 2)))


@pytest.mark.parametrize("coordinate", [LOPSIDED, FAIR])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_variance_of_a_score_is_the_width(
    coordinate: tuple[tuple[Fraction, Fraction], ...], width: int
) -> None:
    mean, square = Fraction(0), Fraction(0)
    for outcome in product(coordinate, repeat=2 * width):
        chance = Fraction(1)
        for _, probability in outcome:
            chance *= probability
        score = sum((outcome[i][0] * outcome[width + i][0] for i in range(width)), Fraction(0))
        mean, square = mean + chance * score, square + chance * score**2
    assert (mean, square) == (0, width)


def test_alternate_scaling_keeps_the_cross_ratio_and_approaches_both_marginals() -> None:
    """So its limit is the two-sided scaling with x² = 3(1 − x)² on the diagonal."""
    plan, before = [[Fraction(3), Fraction(1)], [Fraction(1), Fraction(1)]], Fraction(1)
    for _ in range(6):
        plan = [[x / sum(row) for x in row] for row in plan]
        assert plan[0][0] * plan[1][1] == 3 * plan[0][1] * plan[1][0]
        missed = abs(plan[0][0] + plan[1][0] - 1)
        assert 0 < missed < before
        plan, before = [list(column) for column in zip(*plan, strict=True)], missed
