"""No run is further from the exact result than the bound, and the bound is not far from what runs do."""

import random
from fractions import Fraction

import numpy as np
import pytest

from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, Format
from verify.numbers.roundoff.bound import error_bound
from verify.numbers.roundoff.observed import deviation, observed_error, run
from verify.numbers.roundoff.program import parse

FORMATS = (FLOAT64, FLOAT32, FLOAT16)


def _expression(source: random.Random, depth: int) -> str:
    if depth == 0 or source.random() < 0.15:
        return source.choice(["x", "y", "z", "0.7", "3", "0.125"])
    kind = source.choice(["+", "+", "-", "*", "*", "/", "sqrt", "exp", "log", "neg"])
    a = _expression(source, depth - 1)
    if kind in ("+", "-", "*"):
        return f"({a} {kind} {_expression(source, depth - 1)})"
    if kind == "/":
        return f"({a} / (1.5 + {_expression(source, depth - 2 if depth > 1 else 0)}))"
    return {"sqrt": f"sqrt(2 + {a})", "exp": f"exp(0.25*{a})", "log": f"log(3 + {a})", "neg": f"-{a}"}[kind]


@pytest.mark.parametrize("format", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("rounded_inputs", [False, True])
def test_random_programs_never_exceed_their_bound(format: Format, rounded_inputs: bool) -> None:
    source = random.Random(f"{format.name}{rounded_inputs}")
    finite = 0
    for _ in range(10):
        text = f"{_expression(source, 4)} + x*y - z"
        box = {name: sorted((source.uniform(-1, 1), source.uniform(-1, 1))) for name in "xyz"}
        bound = error_bound(
            text, box, format, rounded_inputs=rounded_inputs, function_ulps=0.5, most_boxes=200
        )
        found, where = observed_error(
            text, box, format, rounded_inputs=rounded_inputs, near=bound.point, samples=64
        )
        assert found <= bound.absolute, (text, box, where)
        finite += bound.absolute < np.inf
    assert finite >= 7


@pytest.mark.parametrize(
    ("text", "box", "published"),
    [
        # FPTaylor 0.9.4, improved rounding and exact optimisation, inputs real.
        ("-x1*x2 - 2*x2*x3 - x1 - x3", dict.fromkeys(("x1", "x2", "x3"), (-15, 15)), 2.949e-13),
        ("4.0*x / (1 + x/1.11)", {"x": ("0.1", "0.3")}, 2.471e-16),
        ("t / (t + 1)", {"t": (0, 999)}, 2.216e-16),
        ("0.954929658551372*z - 0.12900613773279798*(z*z*z)", {"z": (-2, 2)}, 5.937e-16),
        ("log(1 + exp(x))", {"x": (-8, 8)}, 1.987e-15),
        (
            "(x1*x1 + x2 - 11)*(x1*x1 + x2 - 11) + (x1 + x2*x2 - 7)*(x1 + x2*x2 - 7)",
            {"x1": (-5, 5), "x2": (-5, 5)},
            1.000e-12,
        ),
    ],
)
def test_the_bound_is_as_good_as_the_best_published(
    text: str, box: dict[str, tuple[str | int, str | int]], published: float
) -> None:
    bound = error_bound(text, box, rounded_inputs=True, function_ulps="0.75", tightness=1.001)
    assert bound.absolute <= published * 1.001
    assert bound.attained <= bound.absolute
    found, _ = observed_error(text, box, rounded_inputs=True, near=bound.point, samples=1600)
    assert bound.absolute / 3 < found <= bound.absolute


def test_a_search_one_box_at_a_time_forgets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    text, box = "1/(1 + x*x) - x*x*0.01", {"x": (-9, 11)}
    together = error_bound(text, box).absolute
    monkeypatch.setattr("verify.numbers.roundoff.bound._BATCH", 1)
    assert error_bound(text, box).absolute == pytest.approx(together, rel=0.02, abs=0)


def test_errors_that_change_the_slopes_are_covered() -> None:
    """After cancellation 1/b is far steeper at the computed b than at the exact one."""
    source, steepened = np.random.default_rng(5), 0
    program = parse("1 / (x*y - z)")
    for _ in range(300):
        x, y = source.uniform(1, 1.4, 2).astype(np.float16)
        z = np.float16(float(x) * float(y) - source.uniform(0.001, 0.004))
        real = [Fraction(float(number)) for number in (x, y, z)]
        if real[0] * real[1] <= real[2]:
            continue
        found = deviation(program, real, float(run(program, np.array([[x, y, z]]), FLOAT16)[0]))
        point = {name: (number, number) for name, number in zip("xyz", real, strict=True)}
        assert found <= error_bound(program, point, FLOAT16).absolute
        steepened += found > 2.0**-11 / (real[0] * real[1] - real[2]) ** 2
    assert steepened > 3


def test_functions_err_by_the_units_that_are_given() -> None:
    half, one = (error_bound("exp(x)", {"x": (0, 1)}, function_ulps=ulps).absolute for ulps in (0.5, 1))
    assert half == pytest.approx(2.0**-52, rel=1e-9, abs=0)
    assert one == pytest.approx(2.0**-51, rel=1e-9, abs=0)


def test_results_lie_in_the_range_that_is_given() -> None:
    bound = error_bound("x*x - x", {"x": (0, 1)}, FLOAT32)
    assert bound.low <= -0.25
    assert bound.high >= 0


def test_division_narrows_the_bound() -> None:
    """x / (1 + x) has correlated operands: one box cannot see it."""
    coarse = error_bound("x / (1 + x)", {"x": (0, 999)}, most_boxes=1)
    assert error_bound("x / (1 + x)", {"x": (0, 999)}).absolute < coarse.absolute / 1000


@pytest.mark.parametrize("text", ["2*x", "-x", "x/4", "0.5*x*8"])
def test_powers_of_two_round_nothing(text: str) -> None:
    assert error_bound(text, {"x": (1, 3)}, FLOAT32).absolute < 2.0**-140


def test_float_inputs_are_nobody_s_error() -> None:
    assert error_bound("x", {"x": (1, 3)}).absolute == 0
    rounded = error_bound("x", {"x": (1, 3)}, rounded_inputs=True).absolute
    assert 2.0**-52 <= rounded <= 2.0**-52 * (1 + 2.0**-50)


def test_underflow_is_covered() -> None:
    tiny = {"x": ("1e-6", "1e-5"), "y": ("1e-3", "2e-3")}
    found, _ = observed_error("x*y", tiny, FLOAT16, samples=400)
    assert 0 < found <= error_bound("x*y", tiny, FLOAT16).absolute


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("1/x", {"x": (-1, 1)}),
        ("log(x)", {"x": (0, 1)}),
        ("sqrt(x)", {"x": (-1, 1)}),
        ("x*x", {"x": (0, 300)}),
        ("exp(x)", {"x": (0, 12)}),
        ("1/(x*x*x*x*1000)", {"x": (1, 30)}),
    ],
)
def test_what_may_be_undefined_or_overflow_has_no_finite_bound(
    text: str, box: dict[str, tuple[int, int]]
) -> None:
    assert error_bound(text, box, FLOAT16, most_boxes=3000).absolute == np.inf


def test_a_program_without_inputs_is_one_point() -> None:
    third = error_bound("0.1 + 0.2", {})
    assert abs(Fraction(0.1 + 0.2) - Fraction(3, 10)) <= third.absolute < 2.0**-53
    assert error_bound("1/0", {}).absolute == np.inf


def test_runs_are_only_made_in_numpys_formats() -> None:
    with pytest.raises(RequestError, match="not in bfloat16"):
        observed_error("x", {"x": (0, 1)}, BFLOAT16)
