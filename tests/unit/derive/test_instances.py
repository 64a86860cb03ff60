"""Engines on written-out steps: they refute planted falsehoods, and read definitions as the checker does."""

import pytest
from sympy import IndexedBase, Integer, Sum, exp, log, symbols

from verify.checkers import derivation
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.engines import ball_engine, exact_engine, sympy_engine
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

j, k, n, t = symbols("j k n t")
x, y = symbols("x y")
a, w, Z = (IndexedBase(name) for name in "awZ")
ENGINES = (ball_engine, exact_engine, sympy_engine)


def words(obligation: Obligation) -> list[Check]:
    return [word for word in (engine.judge(obligation) for engine in ENGINES) if word is not None]


FALSE = {
    "sign": Chain("c", Setting(), (x + y) ** 2).rearrange("square", x**2 - 2 * x * y + y**2),
    "off by one": Chain("c", Setting(instances=({n: 3},)), Sum(a[j], (j, 1, n))).split(
        "cut", Sum(a[j], (j, 1, n - 1)) + a[n - 1], n, n - 1
    ),
    "product of sums": Chain("c", Setting(instances=({n: 2},)), Sum(a[j], (j, 1, n)) ** 2).rearrange(
        "square", Sum(a[j] ** 2, (j, 1, n))
    ),
    "derivative": Chain("c", Setting(), x**3).differentiate("differentiate", 3 * x, x),
    "dropped term": Chain("c", Setting(positive=(x, y)), x).drop("drop", x + y, -y),
    "hypothesis": Chain("c", Setting(hypotheses=(Hypothesis("h", x, y),)), x).use("use", y, h=2),
    "bound index captured": Chain(
        "c",
        Setting((Definition("d", Z[t], a[j], free=(t,)),), instances=({n: 3, j: 1},)),
        Sum(Z[j], (j, 1, n)),
    ).unfold("unfold", Sum(a[j], (j, 1, n)), "d"),
    "fixed index bound": Chain(
        "c", Setting((Definition("d", Z[j], y),), instances=({n: 3, j: 1},)), Sum(Z[j], (j, 1, n))
    ).unfold("unfold", n * y, "d"),
    "empty denominator": Chain("c", Setting(instances=({n: 0},)), x).rearrange(
        "ratio", x * Sum(a[j], (j, 1, n)) / Sum(a[j], (j, 1, n)) + Sum(a[j], (j, 1, n)) ** -1
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_some_engine_refutes_what_the_checker_does_not_prove(name: str) -> None:
    obligation = FALSE[name].obligation()
    assert Verdict.REFUTED in [word.verdict for word in words(obligation)]
    assert derivation.judge(obligation).verdict is not Verdict.PROVED


def test_combinations_inside_exponentials_are_compared_there() -> None:
    setting = Setting((), (Hypothesis("h", exp(x), y),), positive=(y,))
    right = Chain("c", setting, x).logarithm("take it", log(y), uses={"h": 1}).obligation()
    wrong = Chain("c", setting, x).logarithm("take it", log(y), uses={"h": 2}).obligation()
    assert all(word.verdict.holds for word in words(right))
    assert Verdict.REFUTED in [word.verdict for word in words(wrong)]


def test_a_guard_uses_the_values_of_its_own_indices() -> None:
    one = Definition("d", w[j, t], x, free=(j, t), guards=((j, t - 1),))
    inside = Setting((one,), order=((k, n - 1),), instances=({k: 1, n: 2, t: 0},))
    obligation = Chain("c", inside, w[k, n]).unfold("unfold", x, "d").obligation()
    assert all(word.verdict.holds for word in words(obligation))
    assert derivation.judge(obligation).verdict is Verdict.PROVED


def test_exact_points_say_nothing_where_a_definition_holds_an_exponential() -> None:
    setting = Setting((Definition("d", y, exp(x)),))
    obligation = Chain("c", setting, y).unfold("unfold", exp(x), "d").obligation()
    assert exact_engine.judge(obligation) is None


def test_balls_without_a_value_decide_nothing() -> None:
    made = Chain("c", Setting(positive=(x,)), log(-x) + Integer(0)).rearrange("same", log(-x)).obligation()
    assert ball_engine.judge(made).verdict is Verdict.UNDECIDED
