"""Enclosed matrices hold the exact ones; upper bounds lie above, and not far."""

from fractions import Fraction

import numpy as np
import pytest

from verify.audit.tolerance.worst_case.enclosed import (
    Enclosed,
    frobenius,
    operator_norm,
    product,
    row_norms,
    unit_lower_inverse,
)


def exact(x: np.ndarray) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(x)


def holds(found: Enclosed, wanted: np.ndarray) -> bool:
    apart = np.abs(exact(found.mid) - wanted)
    return bool((apart <= exact(found.rad)).all() and (np.abs(wanted) <= exact(found.upper)).all())


def inverse_of(strict: np.ndarray) -> np.ndarray:
    """Of I + strict, in rationals."""
    c = strict.shape[-1]
    x = exact(np.eye(c))
    for i in range(c):
        for j in range(i):
            x[i, j] = -sum(strict[i, m] * x[m, j] for m in range(j, i))
    return x


def test_a_product_holds_every_product_of_what_its_factors_hold() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 7)), rng.standard_normal((7, 4)) * 1e8
    off_a, off_b = 1e-9 * rng.random((3, 7)), rng.random((7, 4))
    found = product(Enclosed(a, off_a), Enclosed(b, off_b))
    for sign in (-1, 0, 1):
        other = exact(a) + sign * exact(off_a), exact(b) - sign * exact(off_b)
        assert holds(found, other[0] @ other[1])
    near = product(Enclosed(a, np.zeros_like(a)), Enclosed(b, np.zeros_like(b)))
    assert (near.rad <= 1e-14 * (np.abs(a) @ np.abs(b))).all()


@pytest.mark.parametrize("strength", [0.3, 1.0, 2.0])
def test_the_inverse_holds_the_exact_one(strength: float) -> None:
    c = 12
    rng = np.random.default_rng(1)
    for keys in (np.ones((c, c)), rng.uniform(-1, 1, (c, c))):
        strict = np.tril(strength * keys, -1)
        off = np.tril(1e-12 * rng.random((c, c)), -1)
        found = unit_lower_inverse(Enclosed(strict, off))
        for sign in (-1, 0, 1):
            assert holds(found, inverse_of(exact(strict) + sign * exact(off)))
        assert found.rad.max() < 1e-6


def test_an_inverse_beyond_float64_is_not_enclosed() -> None:
    strict = np.tril(np.full((40, 40), 1e6), -1)
    assert np.isinf(unit_lower_inverse(Enclosed(strict, np.zeros_like(strict))).rad).any()


def test_norms_are_upper_bounds_and_close() -> None:
    rng = np.random.default_rng(2)
    for shape in ((1, 1), (5, 40), (40, 5), (16, 16)):
        x = rng.standard_normal((3, *shape)) * 10.0 ** rng.integers(-30, 30, (3, 1, 1))
        largest = np.linalg.norm(x, ord=2, axis=(-2, -1))
        assert (operator_norm(x) >= largest).all()
        assert (operator_norm(x) <= 1.6 * largest).all()
        assert (frobenius(x) >= np.linalg.norm(x, axis=(-2, -1))).all()
    assert row_norms(np.full((1, 4), 1e-200)).item() >= 2e-200
    assert operator_norm(np.zeros((2, 3))) < 1e-100
