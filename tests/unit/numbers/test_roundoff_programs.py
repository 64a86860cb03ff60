"""Programs are read as written; intervals enclose; a rounding error is never larger than the model says."""

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from verify.model.errors import RequestError
from verify.numbers.formats import FLOAT16, FLOAT32, FLOAT64, round_to
from verify.numbers.roundoff.bound import error_bound
from verify.numbers.roundoff.intervals import Intervals, above, below
from verify.numbers.roundoff.model import Rounding, errors
from verify.numbers.roundoff.program import parse

ENDS = (0.0, 1.0, -2.0, 3.5, 0.1, -1e-3, 2.0**-1074, -(2.0**-1022), 1e155, -1e160, 7.0, 2.0**53 + 2)


def test_a_program_is_a_graph_without_repetitions() -> None:
    program = parse("t = x*x + 1\nunused = 3*x\nt/(x*x + 1) - y")
    assert [node.operation for node in program.nodes] == [
        "input", "mul", "constant", "add", "div", "input", "sub",
    ]  # fmt: skip
    assert program.inputs == ("x", "y")
    assert program.operations == 4
    assert program.nodes[4].arguments == (3, 3)


def test_decimals_are_read_exactly() -> None:
    assert parse("0.1 + 1.38e-23*x").nodes[0].value == Fraction(1, 10)
    assert parse("0.1 + 1.38e-23*x").nodes[1].value == Fraction(138, 10**25)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x +", "syntax error in line 1"),
        ("y = x", "does not end with an expression"),
        ("", "does not end with an expression"),
        ("x ** 2", "'x \\*\\* 2' is not part of a program"),
        ("sinh(x)", "sinh"),
        ("import os\nx", "'import os' is no assignment"),
        ("1j * x", "is not part"),
    ],
)
def test_what_is_no_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("box", "message"),
    [({}, "x has no range"), ({"x": (1, 0)}, "reversed"), ({"x": (0, 1), "y": (0, 1)}, "no input y|y")],
)
def test_what_is_no_box_is_refused(box: dict[str, tuple[int, int]], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        error_bound("x + 1", box)


def test_a_constant_beyond_the_format_is_refused() -> None:
    with pytest.raises(RequestError, match="beyond the largest float16"):
        error_bound("70000 * x", {"x": (0, 1)}, FLOAT16)


def _interval(source: random.Random) -> tuple[float, float]:
    pick = [source.choice(ENDS) if source.random() < 0.5 else source.uniform(-9, 9) for _ in range(2)]
    return min(pick), max(pick)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "square"])
def test_intervals_hold_every_exact_result(operation: str) -> None:
    source = random.Random(operation)
    pairs = [(_interval(source), _interval(source)) for _ in range(800)]
    x, y = (Intervals(np.array([p[i][0] for p in pairs]), np.array([p[i][1] for p in pairs])) for i in (0, 1))
    with np.errstate(all="ignore"):
        got = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "square": x.square()}[operation]
    for i, (a, b) in enumerate(pairs):
        for _ in range(3):
            u, v = (source.choice([*ends, source.uniform(*ends)]) for ends in (a, b))
            if operation == "div" and b[0] <= 0 <= b[1]:
                assert np.isnan(got.low[i])
                continue
            p, q = Fraction(u), Fraction(v)
            exact = {"add": p + q, "sub": p - q, "mul": p * q, "square": p * p}.get(operation)
            exact = p / q if exact is None else exact
            assert not exact < _fraction(got.low[i])
            assert not exact > _fraction(got.high[i])


def _fraction(end: float) -> Fraction:
    return Fraction(float(end)) if abs(end) < np.inf else Fraction(int(np.sign(end)) * 10**1000)


def test_exact_sums_and_short_products_stay_points() -> None:
    x, y = Intervals(np.array([2.0]), np.array([2.0])), Intervals(np.array([0.25]), np.array([0.25]))
    for result, value in ((x + y, 2.25), (x - y, 1.75), (x * y, 0.5), (x.square(), 4.0)):
        assert (result.low, result.high) == (value, value)
    tenth = Intervals(np.array([0.1]), np.array([0.1]))
    assert (tenth * tenth).low < (tenth * tenth).high


@pytest.mark.parametrize("function", ["sqrt", "exp", "log"])
def test_functions_hold_their_values(function: str) -> None:
    source = random.Random(function)
    points = [source.uniform(0.001, 30) for _ in range(200)]
    got = getattr(Intervals(np.array(points), np.array(points)), function)()
    with ctx.workprec(200):
        for i, point in enumerate(points):
            exact = getattr(arb(point), function)()
            assert arb(float(got.low[i])) < exact < arb(float(got.high[i])) or exact.is_exact()


def test_rationals_are_enclosed_by_neighbours() -> None:
    for value in (Fraction(1, 3), Fraction(-1, 3), Fraction(1, 4), Fraction(10**30 + 1)):
        assert Fraction(below(value)) <= value <= Fraction(above(value))
        assert above(value) in (below(value), float(np.nextafter(below(value), np.inf)))


@pytest.mark.parametrize("format", [FLOAT64, FLOAT32, FLOAT16], ids=lambda f: f.name)
def test_one_rounding_errs_by_at_most_the_model_and_somewhere_by_as_much(format) -> None:  # type: ignore[no-untyped-def]
    """On every binade, powers of two and subnormals included."""
    source = random.Random(1)
    identity, model = parse("x"), Rounding(format, True, Fraction(1))
    reached: list[Fraction] = []
    for exponent in (0, 1, -3, 9, format.min_exponent, format.min_exponent - 3):
        ties = [Fraction(2 * k + 1, 2**format.precision) for k in (0, 1, 2 ** (format.precision - 1))]
        for share in [*ties, Fraction(1), *(Fraction(source.random()) for _ in range(20))]:
            real = (1 + share) * Fraction(2) ** exponent
            point = Intervals(np.array([below(real)]), np.array([above(real)]))
            bound = errors(identity, [point], model)[0][0]
            rounded = round_to(format, real)
            assert rounded is not None
            assert abs(rounded - real) <= Fraction(bound)
            reached.append(abs(rounded - real) / Fraction(bound))
    assert max(reached) > 1 - Fraction(1, 2**40)
