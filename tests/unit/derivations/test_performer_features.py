"""The proved moments of random features against samples, within intervals that their own moments give.

A mean of N samples with standard deviation s is off by more than 5·s/√N with probability below 1/25 for any
law (Chebyshev) and about 6·10⁻⁷ for a nearly normal one; the seeds are fixed, so a pass is a pass for good.
"""

import numpy as np
import pytest

N = 200_000
Q, K = np.array([0.5, -0.2, 0.1]), np.array([0.3, -0.4, 0.1])
TOGETHER, APART, PRODUCT = (Q + K) @ (Q + K), (Q - K) @ (Q - K), Q @ K
OWN = Q @ Q + K @ K


def within(samples, expected):
    return abs(samples.mean() - expected) <= 5 * samples.std(ddof=1) / np.sqrt(len(samples))


def positive(rows):
    return np.exp(rows @ (Q + K) - OWN / 2)


def trigonometric(rows):
    return np.exp(OWN / 2) * np.cos(rows @ (Q - K))


@pytest.fixture
def rows():
    return np.random.default_rng(20260101).standard_normal((N, 3))


@pytest.mark.parametrize("features", [positive, trigonometric])
def test_features_are_unbiased(rows, features):
    assert within(features(rows), np.exp(PRODUCT))


def test_variances(rows):
    mean = np.exp(PRODUCT)
    assert within((positive(rows) - mean) ** 2, mean**2 * (np.exp(TOGETHER) - 1))
    trig = mean**2 * np.exp(APART) * (1 - np.exp(-APART)) ** 2 / 2
    assert within((trigonometric(rows) - mean) ** 2, trig)


def test_a_wrong_variance_is_noticed(rows):
    mean = np.exp(PRODUCT)
    assert not within((positive(rows) - mean) ** 2, mean**2 * (np.exp(APART) - 1))


@pytest.mark.parametrize(("q", "k"), [(1.0, 0.2), (1.0, -0.05), (1.0, -0.2), (0.3, -0.6), (0.1, -0.1)])
def test_the_crossover_agrees_with_the_variances(q, k):
    r, product = (q - k) ** 2, q * k
    plain = np.exp((q + k) ** 2) - 1
    trig = np.exp(r) * (1 - np.exp(-r)) ** 2 / 2
    assert (plain < trig) == (4 * product < np.log((1 + np.exp(-2 * r)) / 2))


@pytest.mark.parametrize("d", [2, 3])
def test_orthogonal_rows_are_negatively_correlated(d):
    """The covariance of two orthogonal features against its series, and strictly below 0."""
    source = np.random.default_rng(7)
    frames = np.linalg.qr(source.standard_normal((N, d, 2)))[0]
    signs = source.choice([-1.0, 1.0], size=(N, 1, 2))
    lengths = np.sqrt(source.chisquare(d, size=(N, 1, 2)))
    rows = np.moveaxis(frames * signs * lengths, 2, 0)
    z = np.zeros(d)
    z[0] = 1.2
    values = np.exp(rows @ z)
    for one in values:
        assert within(one, np.exp(z @ z / 2))
    products = np.prod(values - np.exp(z @ z / 2), axis=0)
    coefficients = [(z @ z / 2) ** a / np.prod(np.arange(1, a + 1, dtype=float)) for a in range(24)]

    def ratio(a, b):
        return np.prod([(d / 2 + i) / (a + d / 2 + i) for i in range(b)])

    covariance = sum(
        x * y * (ratio(a, b) - 1) for a, x in enumerate(coefficients) for b, y in enumerate(coefficients)
    )
    assert covariance < 0
    assert within(products, covariance)
    assert not within(products, 0.0)
