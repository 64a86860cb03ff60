"""The histogram threshold against every threshold tried, in exact numbers."""

import random
from collections import Counter
from fractions import Fraction

import pytest

from derivations.sparse._buckets import histogram, threshold
from verify.model.errors import RequestError


def bounds(scores, bucket):
    """U and L from the tokens themselves, as fractions."""
    floors = [score.numerator // score.denominator for score in scores]
    upper = sum((Fraction(2) ** (b + 1) for b in floors if b < bucket), Fraction(0))
    lower = sum((Fraction(2) ** b for b in floors if b >= bucket), Fraction(0))
    return upper, lower


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 1000), Fraction(1, 10), Fraction(9, 10)])
def test_it_is_the_highest_threshold_that_passes(seed, epsilon):
    source = random.Random(seed)
    scores = [Fraction(source.randint(-300, 300), 17) for _ in range(40)]
    found = threshold(histogram(scores), epsilon)
    passing = []
    for bucket in range(-20, 20):
        upper, lower = bounds(scores, bucket)
        if lower and (1 - epsilon) * upper <= epsilon * lower:
            passing.append(bucket)
    upper, lower = bounds(scores, found.bucket)
    assert found.mass == upper / (upper + lower) <= epsilon
    kept = {score for score in scores if score >= found.bucket}
    assert kept == {score for score in scores if score >= max(passing)}


@pytest.mark.parametrize("seed", range(8))
def test_the_true_dropped_mass_stays_below_the_bound(seed):
    """Scores are multiples of ½, and 7/5 < √2 < 3/2 bounds the weights of those that are not whole."""
    " roots."
    source = random.Random(100 + seed)
    scores = [Fraction(source.randint(-20, 20), 2) for _ in range(50)]
    found = threshold(histogram(scores), Fraction(1, 5))
    weight = {True: (Fraction(1), Fraction(1)), False: (Fraction(7, 5), Fraction(3, 2))}
    lost_high = kept_low = Fraction(0)
    for score in scores:
        whole = score.denominator == 1
        low, high = weight[whole]
        scale = Fraction(2) ** (score.numerator // score.denominator)
        if score < found.bucket:
            lost_high += scale * high
        else:
            kept_low += scale * low
    assert lost_high / (lost_high + kept_low) <= found.mass <= Fraction(1, 5)


def test_tiles_add_up():
    scores = [Fraction(x, 3) for x in range(-9, 30)]
    assert histogram(scores[:7]) + histogram(scores[7:]) == histogram(scores)


def test_one_token_is_always_kept():
    assert threshold(Counter({3: 1}), Fraction(99, 100)).bucket == 3


@pytest.mark.parametrize(
    ("counts", "epsilon", "says"),
    [
        (Counter(), Fraction(1, 2), "no token"),
        (Counter({0: 1}), Fraction(1), "from 0 up to"),
        (Counter({0: 1}), Fraction(-1), "from 0 up to"),
    ],
)
def test_bad_requests(counts, epsilon, says):
    with pytest.raises(RequestError, match=says):
        threshold(counts, epsilon)
