"""Inductions, minima and names: what the step checker makes of broken ones."""

from typing import Any

import pytest
from derivation_pairs import S, a, chain, i, j, k, n, proved, t, w, why, x, y
from sympy import Expr, Integer, Sum, Symbol, exp, log

from verify.checkers import derivation
from verify.derive import Chain, Definition, Hypothesis, Induction, Minimum, Setting
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict


def _induction(**changes: Any) -> Obligation:
    """Σ_{j<=t} (2j − 1) = t², with parts to break."""
    goal = Induction(
        "odd numbers",
        t,
        Integer(changes.get("first", 1)),
        S[t],
        changes.get("rhs", t**2),
        changes.get("free", ()),
    )
    first = Definition("first", S[1], Integer(1))
    base = Chain("base", Setting((first,)), S[changes.get("first", 1)])
    base = base.unfold("one term", goal.rhs.subs(t, changes.get("first", 1)), "first")
    assumed = changes.get("hypothesis", goal.hypothesis)
    rule = Definition("next", S[t], S[t - 1] + 2 * t - 1)
    setting = Setting((rule, assumed, *changes.get("more", ())), **changes.get("setting", {}))
    step = Chain("step", setting, S[t]).unfold("next", rule.rhs, "next")
    return goal.obligation(changes.get("base", base), step.unfold("so far", goal.rhs, "induction hypothesis"))


HYPOTHESIS = "induction hypothesis"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rhs": t**2 + 1}, "does not reduce"),
        ({"hypothesis": Definition(HYPOTHESIS, S[t], t**2)}, "not what the induction needs"),
        ({"hypothesis": Definition(HYPOTHESIS, S[t - 1], t**2)}, "not what the induction needs"),
        ({"hypothesis": Definition(HYPOTHESIS, S[k], k**2, free=(k,))}, "not what the induction needs"),
        ({"hypothesis": Definition(HYPOTHESIS, S[t - 1], (t - 1) ** 2, free=(t,))}, ""),
        ({"setting": {"order": ((5, t),)}}, "which the start does not give"),
        ({"setting": {"nonempty": (t - 3,)}}, "which the start does not give"),
        ({"setting": {"distinct": ((t, k),)}}, "only for some values"),
        ({"setting": {"positive": (t,)}}, "only for some values"),
        ({"setting": {"hypotheses": (Hypothesis("two", t, Integer(2)),)}}, "that fit"),
        ({"setting": {"hypotheses": (Hypothesis("two", Sum(1, (j, 1, t)), Integer(2)),)}}, "that fit"),
        ({"setting": {"hypotheses": (Hypothesis("two", exp(t), exp(2)),)}}, "that fit"),
        ({"setting": {"nonzero": (t - 2,)}}, "that fit"),
        ({"more": (Definition("two", t, Integer(2)),)}, "for that one only"),
        ({"first": 2}, "does not reduce"),
        (
            {"base": Chain("base", Setting(), Integer(1)).rearrange("elsewhere", Integer(1))},
            "not what the induction needs",
        ),
        (
            {
                "base": Chain("base", Setting((Definition(HYPOTHESIS, S[1], Integer(1)),)), S[1]).unfold(
                    "assume", Integer(1), HYPOTHESIS
                )
            },
            "assumes the induction hypothesis",
        ),
        (
            {
                "base": Chain("base", Setting((Definition("first", S[1], Integer(1)),)), S[1] + x).unfold(
                    "a", 1 + x, "first"
                )
            },
            "not what the induction needs",
        ),
    ],
    ids=range(18),
)
def test_broken_inductions_are_not_proved(changes: dict[str, Any], reason: str) -> None:
    assert proved(_induction())
    assert not proved(_induction(**changes))
    assert reason in why(_induction(**changes))


def _with_free_index(assumed: tuple[Any, ...], **setting: Any) -> Obligation:
    """w[i, t] = x for every i, from w[i, t] = w[i, t−1]; the hypothesis may be assumed for too many i."""
    goal = Induction("constant", t, Integer(1), w[i, t], x, free=(i,) if setting.pop("all", True) else ())
    base = Chain("base", Setting((Definition("first", w[i, 1], x),)), w[i, 1]).unfold("first", x, "first")
    found = Definition(HYPOTHESIS, w[i, t - 1], x, free=assumed)
    step = Chain("step", Setting((Definition("next", w[i, t], w[i, t - 1]), found), **setting), w[i, t])
    return goal.obligation(base, step.unfold("next", w[i, t - 1], "next").unfold("so far", x, HYPOTHESIS))


def test_the_hypothesis_holds_for_no_more_indices_than_the_goal() -> None:
    assert proved(_with_free_index((i,)))
    assert not proved(_with_free_index((i,), all=False))
    assert not proved(_with_free_index((i,), order=((i, t),)))
    assert not proved(_with_free_index((i,), nonempty=(i,)))
    assert not proved(_with_free_index((i,), nonzero=(a[i],)))
    assert not proved(_with_free_index((i,), hypotheses=(Hypothesis("h", a[i], 0),)))


def test_the_base_case_covers_all_indices_too() -> None:
    goal = Induction("constant", t, Integer(1), w[i, t], x, free=(i,))
    rule = Definition("next", w[i, t], w[i, t - 1])
    step = Chain("step", Setting((rule, goal.hypothesis)), w[i, t])
    step = step.unfold("next", w[i, t - 1], "next").unfold("so far", x, HYPOTHESIS)
    for restriction in ({"order": ((i, n),)}, {"distinct": ((i, n),)}, {"order": ((5, t),)}, {}):
        setting = Setting((Definition("first", w[i, 1], x),), **restriction)
        base = Chain("base", setting, w[i, 1]).unfold("first", x, "first")
        assert proved(goal.obligation(base, step)) is (restriction == {})


def test_an_induction_on_a_derivative_or_an_inequality_is_not_one() -> None:
    goal = Induction("nothing", t, Integer(1), S[t], Integer(0))
    base = Chain("base", Setting(), S[1]).differentiate("in x", Integer(0), x)
    step = Chain("step", Setting((goal.hypothesis,)), S[t]).differentiate("in x", Integer(0), x)
    assert "needs equations" in why(goal.obligation(base, step))
    below = Chain("base", Setting(nonnegative=(S,)), S[1]).drop("drop", Integer(0), S[1])
    after = Chain("step", Setting(nonnegative=(S,)), S[t]).drop("drop", Integer(0), S[t])
    assert "needs equations" in why(goal.obligation(below, after))


TRUE_MINIMUM = {"function": x - 1 - log(x), "point": Integer(1), "value": Integer(0), "slope": 1 / x}


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": Integer(1)},
        {"point": Integer(2), "value": 1 - log(2)},
        {"slope": -1 / x},
        {"function": 1 + log(x) - x, "slope": -1 / x},
        {"function": Integer(5), "point": x, "value": Integer(5), "slope": Integer(1)},
        {"function": x, "point": x / 2, "value": x / 2, "slope": 2 / x},
        {"function": (x + 1) ** 2, "point": Integer(-1), "value": Integer(0), "slope": Integer(2)},
        {"function": (x - 1) ** 3, "point": Integer(1), "value": Integer(0), "slope": 3 * (x - 1)},
        {"slope": y / x},
    ],
    ids=range(9),
)
def test_false_minima_are_not_proved(wrong: dict[str, Expr]) -> None:
    assert proved(Minimum("true", x, **TRUE_MINIMUM).obligation())
    assert not proved(Minimum("false", x, **(TRUE_MINIMUM | wrong)).obligation())


def test_a_minimum_of_a_function_with_an_undefined_logarithm_is_not_proved() -> None:
    data = dict(Minimum("true", x, **TRUE_MINIMUM).obligation().data)
    negative = ["*", ["q", "-1"], ["v", "x"]]
    data["function"] = ["+", ["v", "x"], ["*", ["q", "-1"], ["log", negative]]]
    data["value"] = ["+", ["q", "1"], ["*", ["q", "-1"], ["log", ["q", "-1"]]]]
    word = derivation.judge(Obligation("minimum", "x − ln(−x)", "C", data))
    assert word.verdict is not Verdict.PROVED
    assert "inside a logarithm" in word.detail


def test_symbols_may_have_latex_names() -> None:
    bar, tau = Symbol(r"\bar{v}^{*}"), Symbol(r"\tau")
    assert proved(chain(bar / tau * tau, positive=(tau,)).rearrange("cancel", bar).obligation())
