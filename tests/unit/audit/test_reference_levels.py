"""The four references against one another: each lies in what the next one encloses, and false ones do not."""

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from verify.audit.bench import Bench
from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.gradient.confirm import confirm as confirm_gradients
from verify.audit.gradient.evaluated import evaluate as adjoint
from verify.audit.gradient.functional import cotangent
from verify.audit.gradient.levels import gradients_at
from verify.audit.inputs.cells import classes
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference import ball, exact, levels, multiprecision
from verify.audit.reference.confirm import confirm
from verify.audit.reference.definition import evaluate
from verify.audit.reference.levels import LEVELS, reference_at
from verify.model.errors import RequestError
from verify.numbers.ball import contains_rational
from verify.numbers.exact import Exact
from verify.numbers.multiprecision import Multiprecision, to_rational

KINDS = {kind.name: kind for kind in REAL_CLASSES}
NAMES = {name: [n for n in classes(kind) if n in KINDS] for name, kind in MECHANISMS.items()}
SHAPE = Shape(B=1, T=5, H=1, HV=2, K=3, V=2)


def drawn(name, mechanism="kda", shape=SHAPE, dtype="float32"):
    return draw_case(KINDS[name], mechanism, shape, dtype=dtype, seed=1, with_state=True)


@st.composite
def cases(draw, mechanism):
    """Small cases of every class; where there are gates, often 0 and -inf only, whose decays are rational."""
    heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    # Some classes of keys need two dimensions.
    sizes = {name: draw(st.integers(*ends)) for name, ends in (("T", (1, 6)), ("K", (2, 4)), ("V", (1, 3)))}
    case = draw_case(
        KINDS[draw(st.sampled_from(NAMES[mechanism]))],
        mechanism,
        Shape(B=1, H=heads, HV=heads * group, **sizes),
        dtype=draw(st.sampled_from(("float32", "bfloat16", "float64"))),
        seed=draw(st.integers(0, 2**32 - 1)),
        with_state=draw(st.booleans()),
    )
    if case.g is not None and draw(st.booleans()):
        gates = draw(st.lists(st.sampled_from((0.0, -np.inf)), min_size=case.g.size, max_size=case.g.size))
        case = case.replace(g=np.reshape(gates, case.g.shape))
    return case


def forward(case):
    return lambda numbers: dict(zip(("output", "state"), evaluate(case, numbers), strict=True))


def backward(case):
    functional = cotangent(case, case.kind.stateful)
    return lambda numbers: adjoint(case, functional, numbers)


def outside(compute):
    """Numbers of mpmath and rationals that are not in their balls, and how many of each there are in all."""
    balls = ball.enclosed(compute).tensors
    found = {"mpmath": multiprecision.audited(compute).tensors}
    with contextlib.suppress(RequestError):
        found["rational"] = exact.rational(compute).tensors
    wrong, counts = [], dict.fromkeys(found, 0)
    for level, tensors in found.items():
        for name, numbers in tensors.items():
            for index, x in np.ndenumerate(numbers):
                value = x if level == "rational" else _rational(to_rational(x[0]))
                counts[level] += 1
                if not contains_rational(balls[name][index], value):
                    wrong.append((level, name, index))
    return wrong, counts


def _rational(x: Fraction):
    return Exact().number(x)


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_every_level_contains_the_next(mechanism):
    """Outputs, states and gradients: mpmath and rationals in balls, balls in float64 and its bounds."""
    seen = {"rational": 0, "mpmath": 0}

    @seed(6)
    @settings(max_examples=14, deadline=None, database=None, phases=[Phase.generate])
    @given(cases(mechanism))
    def check(case):
        functional = cotangent(case, case.kind.stateful)
        for compute in (forward(case), backward(case)):
            wrong, counts = outside(compute)
            assert not wrong
            for level, count in counts.items():
                seen[level] += count
        for level in LEVELS:
            assert confirm(case, reference_at(case, level), precision=192).holds
            gradients = gradients_at(case, functional, level)
            assert confirm_gradients(case, functional, gradients, precision=192).holds

    check()
    # The exponential of a sink's logit is never rational.
    assert seen["rational"] > 100 or MECHANISMS[mechanism].sink is not None
    assert seen["mpmath"] > 100


WRONG = {
    "a rational": (Exact, "outer", lambda x: x + x * _rational(Fraction(1, 2**90)), "rational"),
    "mpmath": (Multiprecision, "outer", lambda x: x + x * Fraction(1, 2**90), "mpmath"),
}


@pytest.mark.parametrize("direction", [forward, backward])
@pytest.mark.parametrize("which", list(WRONG))
def test_a_wrong_number_is_in_no_ball(which, direction, monkeypatch):
    """An operation wrong by 2^-90, a hundred billion times below the error of float64."""
    system, name, change, level = WRONG[which]
    right = getattr(system, name)
    monkeypatch.setattr(system, name, lambda self, *args: _changed(self, right(self, *args), change))
    wrong, _ = outside(direction(drawn("random", "delta")))
    assert {where[0] for where in wrong} == {level}


def _changed(numbers, matrix, change):
    return numbers.matrix([[change(x) for x in row] for row in numbers.to_lists(matrix)])


@pytest.mark.parametrize("direction", [forward, backward])
def test_a_wrong_ball_contains_neither(direction, monkeypatch):
    from flint import arb

    right = ball.system

    def wrong(name, **options):
        numbers = right(name, **options)
        outer = numbers.outer
        if name == "ball":
            numbers.outer = lambda u, w: _changed(numbers, outer(u, w), lambda x: x * (1 + arb(2.0**-90)))
        return numbers

    monkeypatch.setattr(ball, "system", wrong)
    found, _ = outside(direction(drawn("random", "delta")))
    assert {where[0] for where in found} == {"mpmath", "rational"}


@pytest.mark.parametrize("level", LEVELS)
def test_a_wrong_reference_is_contradicted(level):
    """By balls of more bits: a value moved by twice its error, and errors that are too small."""
    case = drawn("random", "delta")
    reference = reference_at(case, level)
    moved = reference.output.copy()
    moved[0, 3, 1, 1] += 3 * reference.output_error[0, 3, 1]
    for changes in ({"output": moved}, {"output_error": reference.output_error * 1e-6}):
        outcome = confirm(case, _with(reference, **changes), precision=192)
        assert outcome.contradicted > 0
    functional = cotangent(case, with_state=True)
    gradients = gradients_at(case, functional, level)
    tight = {field: error * 1e-6 for field, error in gradients.errors.items()}
    assert confirm_gradients(case, functional, _with(gradients, errors=tight), precision=192).contradicted > 0


def _with(reference, **changes):
    return type(reference)(**{**vars(reference), **changes})


def scalars(k, v, **changes):
    """Linear attention with K = V = 1 and queries of 1: every output is a sum of products."""
    column = np.reshape(k, (1, -1, 1, 1)).astype(float)
    values = np.reshape(v, (1, -1, 1, 1)).astype(float)
    inputs = {"q": np.ones(column.shape), "k": column, "v": values, **changes}
    return Case("linear", "by-hand", 0, "float64", g=None, beta=None, initial_state=None, scale=1.0, **inputs)


@pytest.mark.parametrize("exponent", [60, 90, 100])
def test_the_digits_that_cancellation_takes(exponent):
    """2^e + 1/3 - 2^e keeps of 1/3 the bits above 2^(e - 105)."""
    big, third = 2.0**exponent, 1 / 3
    case = scalars([1, 1, 1], [big, third, -big])
    quantum = Fraction(2) ** (exponent - multiprecision.LOW + 1)
    left = round(Fraction(third) / quantum) * quantum
    apart = abs(left - Fraction(third)) / Fraction(third)
    expected = -math.log10(apart) if apart else multiprecision.MOST_DIGITS
    digits = reference_at(case, "mpmath").digits["state"]
    assert digits.fewest == pytest.approx(min(expected, multiprecision.MOST_DIGITS), abs=1e-9)
    assert reference_at(case, "exact").output[0, 2, 0, 0] == third


def test_digits_are_of_the_lower_precision():
    case = drawn("random")
    most = multiprecision.MOST_DIGITS
    digits = multiprecision.audited(forward(case)).digits
    fewer = multiprecision.audited(forward(case), low=53).digits
    assert all(most - 6 < each.fewest <= each.median <= most for each in digits.values())
    assert all(16 - 6 < each.fewest <= each.median < 17 for each in fewer.values())


def test_a_zero_that_sums_cancel_to_has_the_digits_of_its_terms():
    digits = reference_at(scalars([1, 1, 1], [1 / 3, 2.0**60, -(2.0**60) - 1 / 3]), "mpmath").digits
    assert digits["output"].fewest > 15


@pytest.mark.parametrize("level", ["mpmath", "ball", "exact"])
def test_numbers_below_those_of_float64_leave_an_error(level):
    reference = reference_at(scalars([1e-200], [1e-200]), level)
    assert reference.output.max() == 0
    assert reference.output_error.min() > 0


@pytest.mark.parametrize("level", ["mpmath", "ball", "exact"])
def test_numbers_beyond_float64_are_refused(level):
    with pytest.raises(RequestError, match="leaves the range of float64"):
        reference_at(scalars([1e200], [1e200]), level)


def test_exact_numbers_have_no_error():
    for level in ("ball", "exact"):
        reference = reference_at(scalars([1, 2], [3, 0.25]), level)
        assert reference.output.ravel().tolist() == [3, 3.5]
        assert not reference.output_error.any()
        assert not reference.state_error.any()


def test_rationals_end_where_an_exponential_is_irrational():
    used = {
        (mechanism, name): reference_at(drawn(name, mechanism), "exact")
        for mechanism, name in (
            ("kda", "random"),
            ("kda", "gate-zero"),
            ("softmax", "random"),
            ("linear", "random"),
        )
    }
    assert [each.level for each in used.values()] == ["ball", "rational", "ball", "rational"]
    assert [bool(each.note) for each in used.values()] == [True, False, True, False]
    assert used["kda", "random"].note.startswith("irrational exponentials: exp(-")


def test_large_cases_go_to_a_faster_level(monkeypatch):
    case = drawn("random", "delta")
    functional = cotangent(case, with_state=True)
    monkeypatch.setattr(levels, "LIMITS", {"mpmath": 59, "ball": 60, "exact": 60})
    assert levels.size(case) == 60
    assert reference_at(case, "exact").level == "rational"
    assert reference_at(case, "mpmath").level == "ball"
    assert reference_at(case, "mpmath").note == "too large for mpmath: 60 numbers to update, 59 is the most"
    gradients = gradients_at(case, functional, "exact")
    assert gradients.level == "float64"
    assert gradients.note == (
        "too large for exact: 240 numbers to update, 60 is the most; "
        "too large for ball: 240 numbers to update, 60 is the most"
    )


def test_the_size_of_a_case():
    shape = Shape(B=2, T=7, H=1, HV=3, K=5, V=4)
    assert levels.size(drawn("random", shape=shape)) == 2 * 3 * 7 * 5 * 4
    pairs = 7 * 8 // 2
    assert levels.size(drawn("random", "softmax", shape)) == pytest.approx(2 * 3 * pairs * (5 + 4), rel=0.1)


def test_an_unknown_level_is_refused():
    with pytest.raises(RequestError, match="reference 'balls'"):
        reference_at(drawn("random"), "balls")
    with pytest.raises(RequestError, match="reference 'balls'"):
        Bench(Convention.load("ours", "kda"), 1, reference="balls")
