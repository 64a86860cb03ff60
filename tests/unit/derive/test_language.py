"""The derivation language as data: what it writes down, and what it refuses."""

import json

import pytest
from sympy import IndexedBase, Integer, Max, Sum, exp, sin, sqrt, symbols

from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.derive.tree import expression, tree
from verify.model.errors import RequestError

j, k, n, t = symbols("j k n t")
x, y = symbols("x y")
a, S = IndexedBase("a"), IndexedBase("S")


@pytest.mark.parametrize(
    "written",
    [
        x,
        3 * x / 7 - y**-2,
        exp(x) * a[j + 1],
        Sum(a[j] * exp(y), (j, 1, n - 1)),
        Sum(a[j] * x, (j, 1, k), (k, 1, n)),
    ],
)
def test_formulas_survive_the_way_into_data_and_back(written: object) -> None:
    assert expression(json.loads(json.dumps(tree(written)))) == written  # type: ignore[arg-type]


@pytest.mark.parametrize("foreign", [sin(x), sqrt(x), x**y, Max(x, y)])
def test_what_has_no_place_is_refused_by_name(foreign: object) -> None:
    with pytest.raises(RequestError, match="no place"):
        tree(foreign)  # type: ignore[arg-type]


def test_each_formula_starts_where_the_last_one_ended() -> None:
    data = Chain("c", Setting(), x).rearrange("one", x + 0).rearrange("two", 2 * x - x).data()
    assert data["steps"][1]["before"] == data["steps"][0]["after"]
    assert data["goal"]["relation"] == "="
    assert data["goal"]["derivatives"] == []


def test_an_inequality_anywhere_makes_the_goal_one() -> None:
    chain = Chain("c", Setting(nonnegative=(y,)), x + y).drop("drop", x, y).rearrange("same", x)
    assert chain.data()["goal"]["relation"] == ">="
    assert r"\ge" in chain.data()["goal"]["latex"]


def test_the_goal_of_a_differentiated_chain_shows_the_derivative() -> None:
    goal = (
        Chain("c", Setting(), x**2 * y)
        .differentiate("in x", 2 * x * y, x)
        .differentiate("in y", 2 * x, y)
        .data()["goal"]
    )
    assert goal["derivatives"] == [["v", "x"], ["v", "y"]]
    assert goal["latex"].startswith(r"\frac{\partial}{\partial y} \frac{\partial}{\partial x} \left[")


def test_a_setting_writes_down_all_it_knows() -> None:
    setting = Setting(
        (Definition("d", S[t], a[t], free=(t,), guards=((t, n),)),),
        (Hypothesis("h", x, y),),
        positive=(x, a),
        nonempty=(n,),
        order=((1, k), (k, n)),
        distinct=((j, k),),
        instances=({n: 2, k: 1},),
    )
    data = json.loads(json.dumps(setting.data()))
    assert data["order"] == [[["q", "1"], ["v", "k"]], [["v", "k"], ["v", "n"]]]
    assert data["positive"] == ["x", "a"]
    assert data["definitions"][0]["guards"] == [["t", ["v", "n"]]]
    assert data["instances"] == [{"n": 2, "k": 1}]


def test_the_induction_hypothesis_is_the_goal_one_step_earlier() -> None:
    goal = Induction("i", t, Integer(0), S[j, t], Sum(a[k], (k, 1, t)), free=(j,))
    assert goal.hypothesis.lhs == S[j, t - 1]
    assert goal.hypothesis.rhs == Sum(a[k], (k, 1, t - 1))
    assert goal.hypothesis.free == (j,)
