"""The step checker against planted falsehoods: each one beside the honest twin that it does accept."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from sympy import Expr, IndexedBase, Integer, Sum, Symbol, exp, log, symbols

from verify.checkers import derivation
from verify.derive import Chain, Definition, Hypothesis, Induction, Minimum, Setting
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

i, j, k, l, m, n, t = symbols("i j k l m n t")  # noqa: E741
x, y, z = symbols("x y z")
a, b, e, s, w, S, Z = (IndexedBase(name) for name in "abeswSZ")


def proved(obligation: Obligation) -> bool:
    return derivation.judge(obligation).verdict is Verdict.PROVED


def why(obligation: Obligation) -> str:
    return derivation.judge(obligation).detail


def up_to(body: Expr, limit: Expr = n) -> Sum:
    return Sum(body, (j, 1, limit))


def chain(start: Expr, **setting: Any) -> Chain:
    return Chain("a chain", Setting(**setting), start)


def honest() -> Obligation:
    return (
        chain((x + y) ** 2)
        .rearrange("square", x**2 + 2 * x * y + y**2)
        .rearrange("again", (y + x) ** 2)
        .obligation()
    )


def tampered(change: Callable[[dict[str, Any]], None]) -> Obligation:
    data = copy.deepcopy(dict(honest().data))
    change(data)
    return Obligation("derivation", "tampered", "C", data)


def test_an_honest_chain_is_proved() -> None:
    assert proved(honest())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["steps"][0].update(after=["v", "x"]), "does not reduce to zero"),
        (
            lambda d: d["steps"][1].update(before=["^", ["+", ["v", "y"], ["v", "x"]], 2]),
            "does not start where",
        ),
        (lambda d: d["steps"].pop(0), "does not start where"),
        (lambda d: d["steps"].pop(), "do not end at the goal"),
        (lambda d: d["goal"].update(rhs=["v", "x"]), "do not end at the goal"),
        (lambda d: d["goal"].update(lhs=["v", "x"]), "does not start where"),
        (lambda d: d["goal"].update(relation=">="), "do not end at the goal"),
        (lambda d: d["goal"].update(derivatives=[["v", "x"]]), "in which variables"),
        (lambda d: d["steps"][0].update(relation=">="), "does not fit the rule"),
        (lambda d: d["steps"][0].update(rule="believe"), "does not allow"),
        (lambda d: d["steps"][0].update(uses=[["h", ["q", "1"]]]), "does not allow"),
        (lambda d: d["steps"][0].update(unfold=["h"]), "does not allow"),
        (lambda d: d["steps"][0].update(terms=[["q", "1"]]), "does not allow"),
        (lambda d: d["steps"][0].update(splits=[[["v", "n"], ["v", "n"]]]), "does not allow"),
        (lambda d: d["steps"][0].update(variable=["v", "x"]), "does not allow"),
        (lambda d: d["steps"][0].update(rule="unfold", unfold=["h"]), "not defined"),
        (lambda d: d["steps"][0].update(rule="use hypothesis", uses=[["h", ["q", "1"]]]), "no hypothesis"),
        (lambda d: d["steps"][0].update(before="nonsense"), "not a term"),
        (lambda d: d["steps"][0].update(before=["q", "1/0"]), "not an exact rational"),
        (lambda d: d.pop("setting"), "malformed"),
        (lambda d: d.update(steps=None), "malformed"),
    ],
    ids=range(21),
)
def test_tampering_is_noticed(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    assert not proved(tampered(change))
    assert reason in why(tampered(change))


def test_false_steps_whose_errors_cancel_are_noticed() -> None:
    assert not proved(chain(x).rearrange("wrong", x + 1).rearrange("wrong back", x).obligation())


EARLIER = Definition("d", w[j, t], x, free=(j, t), guards=((j, t - 1),))

# Each pair: a falsehood or an unjustified step, and the closest honest one.
PAIRS: dict[str, tuple[Obligation, Obligation]] = {
    "division by what may vanish": (
        chain(x).rearrange("multiply and divide", (x**2 + x * y) / (x + y)).obligation(),
        chain(x, nonzero=(x + y,)).rearrange("multiply and divide", (x**2 + x * y) / (x + y)).obligation(),
    ),
    "logarithm of what may be negative": (
        chain(log(x * y)).logarithm("product rule", log(x) + log(y)).obligation(),
        chain(log(x * y), positive=(x, y)).logarithm("product rule", log(x) + log(y)).obligation(),
    ),
    "exp of the logarithm of what may be negative": (
        chain(x).rearrange("through the logarithm", exp(log(x, evaluate=False), evaluate=False)).obligation(),
        chain(x, positive=(x,)).rearrange("through it", exp(log(x), evaluate=False)).obligation(),
    ),
    "a sum that may be empty has no positive value": (
        chain(x, positive=(a,)).rearrange("ratio", x * up_to(a[j] * x) / (x * up_to(a[j]))).obligation(),
        chain(x, positive=(a, x), nonempty=(n,))
        .rearrange("ratio", x * up_to(a[j] * x) / (x * up_to(a[j])))
        .obligation(),
    ),
    "a sum with another lower limit may be empty": (
        chain(x, positive=(a,), nonempty=(n,))
        .rearrange("ratio", Sum(a[j] * x, (j, k, n)) / Sum(a[j], (j, k, n)))
        .obligation(),
        chain(x, positive=(a,), nonempty=(n,), order=((k, n),))
        .rearrange("ratio", Sum(a[j] * x, (j, k, n)) / Sum(a[j], (j, k, n)))
        .obligation(),
    ),
    "dropping a term of unknown sign": (
        chain(x + y).drop("drop", x, y).obligation(),
        chain(x + y, nonnegative=(y,)).drop("drop", x, y).obligation(),
    ),
    "dropping a negative square": (
        chain(x - y**2).drop("drop", x, -(y**2)).obligation(),
        chain(x + y**2).drop("drop", x, y**2).obligation(),
    ),
    "dropping a sum because an outer symbol of the bound name is positive": (
        chain(x + Sum(j, (j, -3, n)), positive=(j,)).drop("drop", x, Sum(j, (j, -3, n))).obligation(),
        chain(x + Sum(j**2, (j, -3, n))).drop("drop", x, Sum(j**2, (j, -3, n))).obligation(),
    ),
    "an odd power of what is not known positive": (
        chain(x + y**3).drop("drop", x, y**3).obligation(),
        chain(x + y**3, nonnegative=(y,)).drop("drop", x, y**3).obligation(),
    ),
    "splitting a sum that may be empty": (
        chain(up_to(a[j])).split("cut", up_to(a[j], n - 1) + a[n], n, n - 1).obligation(),
        chain(up_to(a[j]), nonempty=(n,)).split("cut", up_to(a[j], n - 1) + a[n], n, n - 1).obligation(),
    ),
    "cutting outside the range": (
        chain(up_to(a[j]), nonempty=(n,))
        .split("cut", up_to(a[j], m) + Sum(a[j], (j, m + 1, n)), n, m)
        .obligation(),
        chain(up_to(a[j]), order=((0, m), (m, n)))
        .split("cut", up_to(a[j], m) + Sum(a[j], (j, m + 1, n)), n, m)
        .obligation(),
    ),
    "cutting an inner sum by facts on an outer variable of the same name": (
        chain(Sum(up_to(a[j], i), (i, 0, n)), nonempty=(i,))
        .split("cut", Sum(up_to(a[j], i - 1) + a[i], (i, 0, n)), i, i - 1)
        .obligation(),
        chain(up_to(a[j], i), nonempty=(i,)).split("cut", up_to(a[j], i - 1) + a[i], i, i - 1).obligation(),
    ),
    "counting summands that may be fewer than none": (
        chain(Sum(x, (j, m, n))).rearrange("count", x * (n - m + 1)).obligation(),
        chain(Sum(x, (j, m, n)), order=((m, n + 1),)).rearrange("count", x * (n - m + 1)).obligation(),
    ),
    "counting inside a sum with the help of another sum's range": (
        chain(Sum(a[i], (i, m, n)) + Sum(x, (j, m, n)))
        .rearrange("count", Sum(a[i], (i, m, n)) + x * (n - m + 1))
        .obligation(),
        chain(Sum(Sum(x, (j, i, n)), (i, m, n)), order=((m, n + 1),))
        .rearrange("count", Sum(x * (n - i + 1), (i, m, n)))
        .obligation(),
    ),
    "a fixed index of a definition meets a bound one": (
        chain(up_to(Z[j]), definitions=(Definition("d", Z[j], y),), nonempty=(n,))
        .unfold("unfold", n * y, "d")
        .obligation(),
        chain(up_to(Z[j]), definitions=(Definition("d", Z[j], y, free=(j,)),), nonempty=(n,))
        .unfold("unfold", n * y, "d")
        .obligation(),
    ),
    "a bound index captures a fixed one of a definition": (
        chain(up_to(Z[j]), definitions=(Definition("d", Z[t], a[j], free=(t,)),))
        .unfold("unfold", up_to(a[j]), "d")
        .obligation(),
        chain(up_to(Z[j]), definitions=(Definition("d", Z[t], a[i], free=(t,)),), nonempty=(n,))
        .unfold("unfold", n * a[i], "d")
        .obligation(),
    ),
    "a definition of a symbol inside a sum that binds it": (
        chain(up_to(j), definitions=(Definition("d", j, x),), nonempty=(n,))
        .unfold("unfold", n * x, "d")
        .obligation(),
        chain(up_to(y), definitions=(Definition("d", y, x),), nonempty=(n,))
        .unfold("unfold", n * x, "d")
        .obligation(),
    ),
    "a guard that is not met": (
        chain(a[k], definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),))
        .unfold("unfold", x, "d")
        .obligation(),
        chain(a[k], definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),), order=((k, n),))
        .unfold("unfold", x, "d")
        .obligation(),
    ),
    "a guard on the definition's own index, met only by another": (
        chain(w[k, m], definitions=(EARLIER,), order=((k, t - 1),)).unfold("unfold", x, "d").obligation(),
        chain(w[k, m], definitions=(EARLIER,), order=((k, m - 1),)).unfold("unfold", x, "d").obligation(),
    ),
    "a guard met on the range of a sum that reaches too far": (
        chain(
            Sum(a[j], (j, 1, n + 1)),
            definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),),
            order=((0, n),),
        )
        .unfold("unfold", (n + 1) * x, "d")
        .obligation(),
        chain(
            Sum(a[j], (j, 1, n)),
            definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),),
            order=((0, n),),
        )
        .unfold("unfold", n * x, "d")
        .obligation(),
    ),
    "a repeated free index matches different ones": (
        chain(w[j, k], definitions=(Definition("d", w[t, t], x, free=(t,)),))
        .unfold("unfold", x, "d")
        .obligation(),
        chain(w[k, k], definitions=(Definition("d", w[t, t], x, free=(t,)),))
        .unfold("unfold", x, "d")
        .obligation(),
    ),
    "hypothesis with the wrong multiplier": (
        chain(x, hypotheses=(Hypothesis("h", x, y),)).use("use", y, h=2).obligation(),
        chain(x, hypotheses=(Hypothesis("h", x, y),)).use("use", y, h=1).obligation(),
    ),
    "logarithm with a combination that does not fit": (
        chain(x, hypotheses=(Hypothesis("h", exp(x), y),), positive=(y,))
        .logarithm("take it", log(y), uses={"h": 2})
        .obligation(),
        chain(x, hypotheses=(Hypothesis("h", exp(x), y),), positive=(y,))
        .logarithm("take it", log(y), uses={"h": 1})
        .obligation(),
    ),
    "exponentiating without knowing signs": (
        chain(x, hypotheses=(Hypothesis("h", log(x), y),))
        .exponentiate("do", exp(y), uses={"h": 1})
        .obligation(),
        chain(x, hypotheses=(Hypothesis("h", log(x), y),), positive=(x,))
        .exponentiate("do", exp(y), uses={"h": 1})
        .obligation(),
    ),
    "a derivative with an index that may lie outside the sum": (
        chain(up_to(a[j] ** 2)).differentiate("differentiate", 2 * a[k], a[k]).obligation(),
        chain(up_to(a[j] ** 2), order=((1, k), (k, n)))
        .differentiate("differentiate", 2 * a[k], a[k])
        .obligation(),
    ),
    "a derivative in a member that may be the other one": (
        chain(a[k] * a[l]).differentiate("differentiate", a[k], a[l]).obligation(),
        chain(a[k] * a[l], distinct=((k, l),)).differentiate("differentiate", a[k], a[l]).obligation(),
    ),
    "distinct indices of one member say nothing about two members": (
        chain(w[j, k] * x, distinct=((j, k),))
        .differentiate("differentiate", Integer(0), w[1, 2])
        .obligation(),
        chain(w[j, k] * x, distinct=((j, l),))
        .differentiate("differentiate", Integer(0), w[l, k])
        .obligation(),
    ),
    "a derivative that forgets what depends on the variable": (
        chain(log(y), definitions=(Definition("d", y, x**2 + 1),), positive=(y,))
        .differentiate("differentiate", Integer(0), x)
        .obligation(),
        chain(log(y), definitions=(Definition("d", y, exp(x)),), positive=(y,))
        .differentiate("differentiate", Integer(1), x, "d")
        .obligation(),
    ),
    "a derivative that forgets it through two definitions": (
        chain(y, definitions=(Definition("d", y, z), Definition("f", z, x)))
        .differentiate("differentiate", Integer(0), x, "d")
        .obligation(),
        chain(y, definitions=(Definition("d", y, z), Definition("f", z, x)))
        .differentiate("differentiate", Integer(1), x, "d", "f")
        .obligation(),
    ),
    "a derivative of what holds under a hypothesis only": (
        chain(x**2, hypotheses=(Hypothesis("h", x, 1),))
        .use("at 1", Integer(1), h=x + 1)
        .differentiate("differentiate", Integer(0), x)
        .obligation(),
        chain(x**2, hypotheses=(Hypothesis("h", x, 1),))
        .differentiate("differentiate", 2 * x, x)
        .use("at 1", Integer(2), h=2)
        .obligation(),
    ),
    "a derivative in a limit": (
        chain(up_to(a[j])).differentiate("differentiate", Integer(0), n).obligation(),
        chain(up_to(a[j])).differentiate("differentiate", Integer(0), m).obligation(),
    ),
    "a derivative of an inequality": (
        chain(x**2 + y**2).drop("drop", x**2, y**2).differentiate("differentiate", 2 * x, x).obligation(),
        chain(x**2 + y**2).differentiate("differentiate", 2 * x, x).obligation(),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_falsehood_is_not_proved(name: str) -> None:
    assert not proved(PAIRS[name][0])


@pytest.mark.parametrize("name", PAIRS)
def test_its_honest_twin_is(name: str) -> None:
    assert proved(PAIRS[name][1]), why(PAIRS[name][1])


def test_a_goal_with_derivatives_says_so() -> None:
    made = chain(x**2).differentiate("differentiate", 2 * x, x).obligation()
    assert made.data["goal"]["derivatives"] == [["v", "x"]]
    hidden = copy.deepcopy(dict(made.data))
    hidden["goal"]["derivatives"] = []
    assert not proved(Obligation("derivation", "x² = 2x", "C", hidden))


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
