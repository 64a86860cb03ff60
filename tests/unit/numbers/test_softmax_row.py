"""A softmax row never errs by more than its bound, and a row that drifts errs by almost as much."""

import numpy as np
import pytest

from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, round_array
from verify.numbers.roundoff.rows import deviation, drawn, drifting, online, two_passes
from verify.numbers.roundoff.softmax import SoftmaxRow, softmax_error

HALF = 0.501
"""Units in the last place of the exponentials of `rows`."""


@pytest.mark.parametrize("keys", [1, 2, 3, 5, 33, 300])
@pytest.mark.parametrize("reach", [0.1, 4, 30, 160])
def test_no_row_exceeds_the_bound(keys: int, reach: float) -> None:
    source = np.random.default_rng(keys)
    once = softmax_error(SoftmaxRow(keys, reach, function_ulps=HALF))
    tiles = softmax_error(SoftmaxRow(keys, reach, function_ulps=HALF, rescalings=-(-keys // 7) - 1))
    for _ in range(6):
        logits, values = drawn(keys, reach, source)
        assert deviation(logits, values, two_passes(logits, values)) <= once
        for order in (logits, np.sort(logits)):
            assert deviation(order, values, online(order, values, 7)) <= tiles


@pytest.mark.parametrize("keys", [2, 16, 256, 2048])
def test_drifting_rows_come_near_the_bound(keys: int) -> None:
    logits, values = drifting(keys)
    bound = softmax_error(SoftmaxRow(keys, 17, function_ulps=HALF))
    assert bound / (1.005 + 6 / keys) < deviation(logits, values, two_passes(logits, values)) <= bound


def test_the_range_of_the_logits_hardly_matters() -> None:
    near, far = (softmax_error(SoftmaxRow(64, reach)) for reach in (2, 1e6))
    assert near < far < 1.1 * near


def test_many_weights_may_vanish() -> None:
    logits = np.linspace(-400, 0, 500, dtype=np.float32)
    values = np.where(np.arange(500) % 2, 1, -1).astype(np.float32)
    assert deviation(logits, values, two_passes(logits, values)) <= softmax_error(SoftmaxRow(500, 400))


def test_weights_stored_in_bfloat16() -> None:
    source = np.random.default_rng(3)
    plain, stored = (softmax_error(SoftmaxRow(40, 8, stored=s)) for s in (None, BFLOAT16))
    worst = 0.0
    for _ in range(30):
        logits, values = drawn(40, 8, source)
        weights = np.exp(logits - logits.max())
        kept = round_array(BFLOAT16, weights.astype(float)).astype(np.float32)
        computed = np.float32(np.add.accumulate(kept * values)[-1] / np.add.accumulate(weights)[-1])
        worst = max(worst, deviation(logits, values, computed))
    assert plain < worst <= stored


def test_errors_of_the_logits_are_part_of_it() -> None:
    source = np.random.default_rng(4)
    plain, given = (softmax_error(SoftmaxRow(8, 8, logit_error=e)) for e in (0, 2.0**-10))
    worst = 0.0
    for _ in range(30):
        logits, values = drawn(8, 8, source)
        values = np.sign(values)
        wrong = (logits + np.sign(values) * np.float32(2.0**-10) * np.float32(0.999)).astype(np.float32)
        worst = max(worst, deviation(logits, values, two_passes(wrong, values)))
    assert plain < worst <= given


def test_the_result_is_rounded_too() -> None:
    source = np.random.default_rng(6)
    stored = softmax_error(SoftmaxRow(8, 8, output=BFLOAT16))
    worst = 0.0
    for _ in range(200):
        logits, values = drawn(8, 8, source)
        kept = round_array(BFLOAT16, two_passes(logits, values + 2).astype(float).reshape(1))[0]
        worst = max(worst, deviation(logits, values + 2, kept))
    assert softmax_error(SoftmaxRow(8, 8, values=3)) < worst <= 3 * stored


def test_one_key_costs_the_product_and_the_division() -> None:
    u = 2.0**-24
    assert 2 * u < softmax_error(SoftmaxRow(1, 0, function_ulps=0)) < 2.001 * u + 2.0**-110


def test_large_values_scale_the_bound() -> None:
    one, many = (softmax_error(SoftmaxRow(8, 8, values=v)) for v in (1, 1024))
    assert many == pytest.approx(1024 * one, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (lambda: SoftmaxRow(0, 1), "keys must be at least 1"),
        (lambda: SoftmaxRow(4, -1), "reach must be at least 0"),
        (lambda: softmax_error(SoftmaxRow(4096, 8, format=FLOAT16)), "exceed 1/8"),
        (lambda: softmax_error(SoftmaxRow(40, 8, values=1e38)), "may overflow in float32"),
        (lambda: softmax_error(SoftmaxRow(2000, 8, stored=FLOAT16, format=FLOAT32)), "may vanish"),
    ],
)
def test_what_has_no_bound_says_so(row, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=message):
        row()
