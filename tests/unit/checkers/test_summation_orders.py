"""Every order of a rounded inner product against trees drawn at random, planted falsehoods and bad data."""

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.checkers.summation_orders import _results, judge
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict
from verify.numbers.formats import Format, round_to

NARROW = Format("4 bits", 4, -6, 20)


def judged(value: Any) -> Check:
    return judge(Obligation("summation-orders", "an inner product", "E", value))


def data(left: list[int], right: list[int], *, agree: bool = True, precision: int = 4) -> dict[str, Any]:
    texts = {"left": [str(x) for x in left], "right": [str(x) for x in right]}
    return {**texts, "precision": precision, "min_exponent": -6, "agree": agree}


def rounded(x: Fraction) -> Fraction:
    value = round_to(NARROW, x)
    assert value is not None
    return value


def one_order(products: list[Fraction], random: Random) -> Fraction:
    if len(products) == 1:
        return rounded(products[0])
    random.shuffle(products)
    cut = random.randint(1, len(products) - 1)
    left, right = products[:cut], products[cut:]
    fused = len(left) == 1 and random.random() < 0.5
    return rounded((left[0] if fused else one_order(left, random)) + one_order(right, random))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-40, 40), min_size=1, max_size=6), st.integers(0, 10**6))
def test_every_order_is_among_those_found(numbers: list[int], seed: int) -> None:
    products = [Fraction(x) for x in numbers]
    assert one_order(products, Random(seed)) in _results(products, 4, -6)


def test_orders_agree_up_to_the_bound_and_differ_beyond() -> None:
    assert judged(data([8, -4, 2, 2], [1, 1, 1, -1])).verdict is Verdict.PROVED
    assert judged(data([16, 1, -1], [1, 1, 1])).verdict is Verdict.REFUTED
    assert judged(data([16, 1, -1], [1, 1, 1], agree=False)).verdict is Verdict.PROVED
    assert judged(data([8, -4, 2, 2], [1, 1, 1, -1], agree=False)).verdict is Verdict.REFUTED


def test_a_sum_that_is_no_number_of_the_format_is_no_witness() -> None:
    assert "no number of the format" in judged(data([16, 1], [1, 1], agree=False)).detail


def test_a_product_may_be_fused() -> None:
    fused = data([5, -25], [5, 1], agree=False)
    assert "0" in judged(fused).detail
    assert judged(fused | {"agree": True}).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    "changed",
    [
        {"left": []},
        {"left": ["1", "2"]},
        {"left": [0.5]},
        {"left": ["1"] * 10, "right": ["1"] * 10},
        {"precision": 0},
        {"min_exponent": None},
        {"agree": "yes"},
    ],
)
def test_bad_data_is_refuted_with_a_reason(changed: dict[str, Any]) -> None:
    found = judged(data([1], [1]) | changed)
    assert found.verdict is Verdict.REFUTED
    assert found.detail
