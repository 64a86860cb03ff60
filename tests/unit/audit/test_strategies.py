"""Strategies over the input classes: everything they promise, and how their cases shrink."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from verify.audit.case import Shape
from verify.audit.convention.convention import Convention
from verify.audit.failure.simplify import SIMPLER, integers, powers_of_two, short, simpler
from verify.audit.inputs.cells import cell_of, classes
from verify.audit.inputs.strategies import cases
from verify.audit.mechanism import MECHANISMS
from verify.model.errors import RequestError

QUICK = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("mechanism", "dtype"), [*((name, "float32") for name in MECHANISMS), ("kda", "float16")]
)
def test_every_class_is_drawn_and_every_case_is_valid(mechanism, dtype):
    met = set()

    @QUICK
    @given(cases(mechanism, dtype=dtype, most_tokens=20))
    def drawn(case):
        met.add(case.name)
        assert case.mechanism == mechanism
        assert case.dtype == dtype
        assert (case.log_decay <= 0).all()
        # A gate may be -inf.
        assert all(np.isfinite(x).all() for x in case.with_finite_gates().arrays().values())

    drawn()
    assert len(met) >= len(classes(MECHANISMS[mechanism])) // 3


def test_cases_keep_to_a_convention():
    ours = Convention.load("ours", "kda", "chunked_kda")
    arguments = {n: a for n, a in ours.arguments.items() if n != "initial_state"}
    narrow = dataclasses.replace(ours, arguments=arguments, grouped_heads=False, length_multiple=16)

    @QUICK
    @given(cases("kda", convention=narrow, most_tokens=40, names=["random", "gate-strong"]))
    def drawn(case):
        assert narrow.refusal(case) is None
        assert case.shape.T in (16, 32)
        assert case.name in ("random", "gate-strong")

    drawn()
    with pytest.raises(RequestError, match="did you mean gate-strong"):
        cases("kda", names=["gate-stong"])
    with pytest.raises(RequestError, match="input class"):
        cases("linear", names=["gate-strong"])


def test_a_failing_case_shrinks_in_shape_and_numbers():
    smallest = find(
        cases("gdn", names=["random", "correlated"]),
        lambda case: case.shape.T >= 3 and case.v.any(),
        settings=settings(QUICK, max_examples=300, suppress_health_check=list(HealthCheck)),
    )
    s = smallest.shape
    assert (s.B, s.T, s.H, s.HV, s.K, s.V) == (1, 3, 1, 1, 1, 1)
    assert smallest.name == "random"
    assert (powers_of_two(smallest.v) == smallest.v).all()


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=8))
@QUICK
def test_simpler_numbers_are_near_and_stay_put(numbers):
    x = np.array(numbers)
    for change, factor in ((powers_of_two, 2**0.5), (short, 1 + 1 / 16)):
        changed = change(x)
        assert (change(changed) == changed).all()
        assert (np.sign(changed) == np.sign(x)).all()
        assert (np.abs(changed) <= factor * np.abs(x) * (1 + 1e-12)).all()
        assert (np.abs(changed) * factor * (1 + 1e-12) >= np.abs(x)).all()
    whole = integers(x)
    assert (integers(whole) == whole).all()
    assert (whole == x).all() or (whole == np.rint(x)).all()


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_simpler_cases_come_to_an_end(mechanism):
    """Taking the first that differs, again and again, does not go round in circles."""
    case = cell_of("random", mechanism, Shape(B=1, T=4, H=1, HV=2, K=8, V=3), "float32", True, 0)

    def same(a, b):
        return a.arrays().keys() == b.arrays().keys() and all(
            np.array_equal(x, b.arrays()[name]) for name, x in a.arrays().items()
        )

    for _ in range(60):
        following = next((c for c in simpler(case) if not same(c, case)), None)
        if following is None:
            break
        case = following
    else:
        pytest.fail("simpler numbers go round in circles")
    assert case.initial_state is None
    assert set(np.unique(case.v)) == {1.0}
    for change in SIMPLER:
        assert same(change(case), case)
