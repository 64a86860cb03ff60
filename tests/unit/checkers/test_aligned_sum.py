"""The replayed tensor-core model against one in float64 integers, on drawn sums, falsehoods and bad data."""

from fractions import Fraction
from math import frexp, ldexp, trunc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.checkers.aligned_sum import judge
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

FACTOR = st.builds(ldexp, st.integers(-255, 255).map(float), st.integers(-12, 4))
ADDEND = st.builds(ldexp, st.integers(-(2**24) + 1, 2**24 - 1).map(float), st.integers(-30, -10))


def modelled(pairs: list[tuple[float, float]], addend: float, fraction: int, precision: int) -> float:
    """Floats all of whose products and sums are exact in float64."""
    exponents = [frexp(a)[1] + frexp(b)[1] - 2 for a, b in pairs if a and b]
    exponents += [frexp(addend)[1] - 1] if addend else []
    if not exponents:
        return 0.0
    grid = max(exponents) - fraction
    total = sum(trunc(ldexp(a * b, -grid)) for a, b in pairs) + trunc(ldexp(addend, -grid))
    extra = max(0, abs(total).bit_length() - precision)
    return ldexp(float((abs(total) >> extra << extra) * (1 if total > 0 else -1)), grid)


def data(
    steps: list[list[tuple[float, float]]], addend: float, fraction: int, result: float
) -> dict[str, Any]:
    return {
        "model": {"fraction": fraction, "precision": 24, "min_exponent": -126},
        "addend": str(Fraction(addend)),
        "steps": [[[str(Fraction(a)), str(Fraction(b))] for a, b in step] for step in steps],
        "result": str(Fraction(result)),
        "bound": {"term": str(Fraction(1, 2**fraction)), "final": str(Fraction(1, 2**23))},
    }


def judged(value: Any) -> Check:
    return judge(Obligation("aligned-sum", "a sum", "E", value))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(FACTOR, FACTOR), min_size=1, max_size=9), ADDEND, st.integers(21, 27))
def test_the_model_agrees_with_floats_and_stays_within_its_bound(
    pairs: list[tuple[float, float]], addend: float, fraction: int
) -> None:
    middle = len(pairs) // 2 + 1
    steps = [step for step in (pairs[:middle], pairs[middle:]) if step]
    result = addend
    for step in steps:
        result = modelled(step, result, fraction, 24)
    found = judged(data(steps, addend, fraction, result))
    assert found.verdict is Verdict.PROVED, found.detail
    off = data(steps, addend, fraction, result + 2.0**-80)
    assert judged(off | {"result": str(Fraction(result) + Fraction(1, 2**200))}).verdict is Verdict.REFUTED


def test_a_bound_that_is_too_small_is_refuted() -> None:
    lost = data([[(2.0**-12 - 2.0**-20, 2.0**-12)] * 8], 1.0, 23, 1.0)
    assert judged(lost).verdict is Verdict.PROVED
    assert judged(lost | {"exceeds": [8]}).verdict is Verdict.REFUTED
    tight = lost | {"bound": {"term": str(Fraction(7, 2**27)), "final": "0"}}
    assert "beyond" in judged(tight).detail


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": []},
        {"steps": [[["1", "2", "3"]]]},
        {"model": {"fraction": -1, "precision": 24, "min_exponent": -126}},
        {"model": {}},
        {"result": 0.5},
        {"exceeds": [2**30]},
        {"exceeds": 3},
        {"bound": {}},
    ],
)
def test_bad_data_is_refuted_with_a_reason(changed: dict[str, Any]) -> None:
    found = judged(data([[(1.0, 1.0)]], 1.0, 23, 2.0) | changed)
    assert found.verdict is Verdict.REFUTED
    assert found.detail
