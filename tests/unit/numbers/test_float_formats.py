"""Float formats: constants and rounding, against NumPy's and PyTorch's own conversions."""

import random
from fractions import Fraction

import numpy as np
import pytest
import torch

from verify.model.errors import RequestError
from verify.numbers.formats import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    TF32,
    format_named,
    is_representable,
    is_representable_array,
    round_array,
    round_to,
)

TORCH = {FLOAT64: torch.float64, FLOAT32: torch.float32, FLOAT16: torch.float16, BFLOAT16: torch.bfloat16}
ALL = list(FORMATS.values())


def named(formats):
    return pytest.mark.parametrize("target", formats, ids=lambda f: f.name)


@named(TORCH)
def test_constants(target):
    info = torch.finfo(TORCH[target])
    assert Fraction(info.eps) == 2 * target.unit_roundoff
    assert Fraction(info.tiny) == target.min_normal
    assert Fraction(info.max) == target.max
    assert Fraction(info.tiny) * Fraction(info.eps) == target.min_subnormal


def test_tf32_has_the_range_of_float32_and_the_precision_of_float16():
    assert (TF32.unit_roundoff, TF32.min_normal) == (FLOAT16.unit_roundoff, FLOAT32.min_normal)
    assert TF32.max == (2 - Fraction(1, 2**10)) * 2**127


@named([FLOAT16, BFLOAT16])
def test_every_value_and_every_midpoint_rounds_as_pytorch_does(target):
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    values = bits.view(TORCH[target]).double()
    values = values[values.isfinite()].sort().values
    points = torch.cat([values, (values[1:] + values[:-1]) / 2])
    points = torch.cat([points, torch.nextafter(points, points * 2), torch.nextafter(points, points * 0)])
    # From float64 through float32 PyTorch would round twice; only points that float32 holds are comparable.
    points = points[points.float().double() == points]
    expected = points.to(TORCH[target]).double().numpy()
    np.testing.assert_array_equal(round_array(target, points.numpy()), expected)
    assert is_representable_array(target, values.numpy()).all()


@named([FLOAT16, FLOAT32])
def test_float64_arrays_round_as_numpy_does(target):
    rng = np.random.default_rng(0)
    x = np.ldexp(rng.standard_normal(20000), rng.integers(-160, 135, 20000))
    with np.errstate(over="ignore"):
        expected = x.astype(target.name).astype(np.float64)
    np.testing.assert_array_equal(round_array(target, x), expected)


@named(ALL)
def test_fractions_and_arrays_round_alike(target):
    rng = np.random.default_rng(1)
    low = target.min_exponent - target.precision - 3
    x = np.ldexp(rng.integers(-(2**20), 2**20, 500).astype(float), rng.integers(max(low, -1070), 128, 500))
    steps = np.round(x / 2) + 0.5
    for value, rounded in [*zip(x, round_array(target, x), strict=True),
                           *zip(steps, round_array(target, steps), strict=True)]:  # fmt: skip
        exact = round_to(target, Fraction(float(value)))
        assert (None if np.isinf(rounded) else Fraction(float(rounded))) == exact


@named(ALL)
def test_fractions_round_to_the_nearest_and_ties_to_even(target):
    quantum = 2 * target.unit_roundoff
    one = Fraction(1)
    assert round_to(target, one + quantum / 2) == 1
    assert round_to(target, one + 3 * quantum / 2) == 1 + 2 * quantum
    assert round_to(target, one + quantum / 2 + Fraction(1, 10**40)) == 1 + quantum
    assert round_to(target, target.min_subnormal / 2) == 0
    assert round_to(target, target.min_subnormal * Fraction(3, 4)) == target.min_subnormal
    assert round_to(target, -target.max) == -target.max
    half = 2 * target.unit_roundoff * Fraction(2) ** target.max_exponent / 2
    assert round_to(target, target.max + half) is None
    assert round_to(target, target.max + half - 1) == target.max if half > 1 else True
    assert round_to(target, Fraction(0)) == 0


@named(ALL)
def test_rounding_error_is_at_most_half_a_unit(target):
    rng = random.Random(target.name)
    for _ in range(200):
        x = Fraction(rng.randint(1, 10**30), rng.randint(1, 10**30))
        rounded = round_to(target, x)
        if target.min_normal <= rounded:
            assert abs(rounded - x) <= target.unit_roundoff * x
        assert is_representable(target, rounded)
        assert is_representable(target, x) == (x == rounded)


def test_special_values_pass():
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308])
    rounded = round_array(BFLOAT16, special)
    np.testing.assert_array_equal(rounded, [0.0, -0.0, np.inf, -np.inf, np.nan, np.inf])
    np.testing.assert_array_equal(np.signbit(rounded[:2]), [False, True])
    assert is_representable_array(BFLOAT16, special).tolist() == [True, True, False, False, False, False]
    assert round_array(FLOAT64, special) is not special


def test_names():
    assert format_named("bfloat16") is BFLOAT16
    with pytest.raises(RequestError, match=r"unknown float format 'bf16'"):
        format_named("bf16")
