"""The checkers of KDA steps, lengths, retention and signs: planted falsehoods are refused, nothing raises."""

import copy
from fractions import Fraction
from typing import Any

import pytest

from verify.checkers import contraction, kda_product, no_kda_step, positivstellensatz, retention
from verify.checkers.enclosure import exp
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

Data = dict[str, Any]
MODULES = (contraction, kda_product, no_kda_step, positivstellensatz, retention)

STEP = {"alpha": ["1/2", "1/3"], "erase": [["1/4", "-1/4"], ["-1/4", "1/4"]]}
SQUARES = "(declare-const x Real)(assert (or (> x 0.0) (< x 0.0)))(assert (<= (* x x) 0.0))"

TRUE: dict[str, Data] = {
    "stretch": {"matrix": [["1", "3/4"], ["0", "1"]], "vector": ["0", "1"]},
    "contraction": {
        "matrix": [["3/5", "0"], ["0", "1"]],
        "weights": ["16/25", "0"],
        "rows": [["1", "0"], ["0", "1"]],
    },
    "kda-product": {
        "matrix": [["3/8", "1/12"], ["1/8", "1/4"]],
        "factors": [STEP],
        "radicand": "0",
        "bounded": True,
        "within": "0",
    },
    "no-kda-step": {
        "matrix": [["0", "3/4"], ["1/2", "-1/4"]],
        "bounded": True,
        "rule": "pair-sum",
        "at": {"pair": [0, 1]},
    },
    "positivstellensatz": {
        "smtlib": SQUARES,
        "cases": [[{"of": [0, 0]}, {"of": [1]}], [{"of": [0, 0]}, {"of": [1]}]],
    },
    "retention": {
        "gates": [["1/2", "1/3"], ["1/4", "1/2"], ["1/2", "1/4"]],
        "logarithms": False,
        "betas": ["1/2", "1", "2"],
        "keys": [["1", "0"], ["1", "1"], ["0", "1"]],
        "exact": True,
        "rows": [
            {
                "token": 1,
                "ceiling": ["1/8", "1/8"],
                "channels": [["1/8", "1/8"], ["1/8", "1/8"]],
                "share": ["1/32", "1/32"],
                "length": ["5/4096", "5/4096"],
            },
            {
                "token": 3,
                "ceiling": ["2", "2"],
                "channels": [["1", "1"], ["1", "1"]],
                "share": ["2", "2"],
                "length": ["4", "4"],
            },
        ],
    },
}


def judge(kind: str, data: Data) -> Verdict:
    (module,) = (module for module in MODULES if kind in module.KINDS)
    return module.judge(Obligation(kind, "a statement", "E", data)).verdict


@pytest.mark.parametrize("kind", TRUE)
def test_a_true_statement_holds(kind: str) -> None:
    assert judge(kind, TRUE[kind]) is Verdict.PROVED


FALSE: list[tuple[str, Data]] = [
    ("stretch", {"vector": ["1", "0"]}),
    ("stretch", {"vector": ["0", "0"]}),
    ("stretch", {"vector": ["1"]}),
    ("contraction", {"weights": ["16/25", "-1"]}),
    ("contraction", {"weights": ["15/25", "0"]}),
    ("contraction", {"matrix": [["3/5", "0"], ["0", "2"]]}),
    ("kda-product", {"matrix": [["3/8", "1/12"], ["1/8", "1/3"]]}),
    ("kda-product", {"matrix": [["3/8"]]}),
    ("kda-product", {"factors": []}),
    ("kda-product", {"factors": [STEP, STEP]}),
    ("kda-product", {"factors": [{**STEP, "alpha": ["1/2", "4/3"]}]}),
    ("kda-product", {"factors": [{**STEP, "erase": [["1/4", "-1/4"], ["1/4", "1/4"]]}]}),
    ("kda-product", {"factors": [{**STEP, "erase": [["1/4", "-1/4"], ["-1/4", "1/2"]]}]}),
    ("kda-product", {"factors": [{**STEP, "erase": [["0", "1"], ["1", "0"]]}]}),
    ("kda-product", {"within": "-1"}),
    ("kda-product", {"bounded": "true"}),
    ("no-kda-step", {"matrix": [["0", "3/4"], ["1/2", "1/4"]]}),
    ("no-kda-step", {"bounded": False}),
    ("no-kda-step", {"rule": "pair-cap"}),
    ("no-kda-step", {"rule": "none"}),
    ("no-kda-step", {"at": {"pair": [0, 0]}}),
    ("no-kda-step", {"at": {"pair": [0, 2]}}),
    ("no-kda-step", {"at": {"pair": [-1, 0]}}),
    ("positivstellensatz", {"cases": [[{"of": [0, 0]}, {"of": [1]}]]}),
    ("positivstellensatz", {"cases": [[], []]}),
    ("positivstellensatz", {"cases": [[{"of": [0, 0]}, {"of": [0, 0], "times": "(- 1.0)"}]] * 2}),
    ("positivstellensatz", {"cases": [[{"of": [0, 0]}, {"of": [1], "times": "x"}]] * 2}),
    ("positivstellensatz", {"cases": [[{"of": [0, 0], "square": "1"}, {"of": [1]}]] * 2}),
    ("positivstellensatz", {"cases": [[{"of": [0, 0]}, {"of": [1], "sign": 1}]] * 2}),
    ("positivstellensatz", {"cases": [["x"], ["x"]]}),
    ("positivstellensatz", {"smtlib": SQUARES.replace("<=", ">=")}),
    ("positivstellensatz", {"smtlib": SQUARES + "(minimize x)"}),
    ("positivstellensatz", {"smtlib": SQUARES + ")"}),
    ("retention", {"betas": ["1/2", "1", "3"]}),
    ("retention", {"gates": [["1/2", "1/3"], ["1/4", "1/2"], ["1/2", "5/4"]]}),
    ("retention", {"gates": [["1/2", "1/3"], ["1/4", "1/2"], ["1/2", "1/2"]]}),
    ("retention", {"logarithms": True}),
    ("retention", {"keys": [["1", "0"], ["1", "2"], ["0", "1"]]}),
    ("retention", {"keys": [["1", "0"], ["0", "0"], ["0", "1"]]}),
    ("retention", {"rows": []}),
    ("retention", {"rows": TRUE["retention"]["rows"][::-1]}),
    ("retention", {"rows": [{**TRUE["retention"]["rows"][0], "token": 4}]}),
    ("retention", {"rows": [{**TRUE["retention"]["rows"][0], "share": ["0", "1/33"]}]}),
    ("retention", {"rows": [{**TRUE["retention"]["rows"][0], "length": ["1", "1"]}]}),
    ("retention", {"rows": [{**TRUE["retention"]["rows"][0], "ceiling": ["0", "1/9"]}]}),
    ("retention", {"rows": [{**TRUE["retention"]["rows"][0], "channels": [["1/8", "1/8"]]}]}),
]


@pytest.mark.parametrize(("kind", "change"), FALSE)
def test_planted_falsehoods_are_refused(kind: str, change: Data) -> None:
    assert judge(kind, {**TRUE[kind], **change}) is Verdict.REFUTED


@pytest.mark.parametrize("kind", TRUE)
def test_malformed_data_is_refused_and_never_raises(kind: str) -> None:
    for name in TRUE[kind]:
        for value in (None, [], {}, "x", -1, [[]], 0.5):
            data = copy.deepcopy(TRUE[kind])
            if data[name] == value or (name, value) in (("keys", None),):
                continue
            data[name] = value
            assert judge(kind, data) is Verdict.REFUTED, (name, value)
        assert judge(kind, {key: item for key, item in TRUE[kind].items() if key != name}) is Verdict.REFUTED


def test_irrational_numbers_are_compared_exactly() -> None:
    """R = (1 √2/2; √2/2 1/2) has rank 1 and trace 3/2; I − R is off by √2/2 − 7/10, about 0.0071, twice."""
    erase = [["1", ["0", "1/2"]], [["0", "1/2"], "1/2"]]
    data: Data = {
        "matrix": [["0", "-7/10"], ["-7/10", "1/2"]],
        "factors": [{"alpha": ["1", "1"], "erase": erase}],
        "radicand": "2",
        "bounded": True,
        "within": "1/90",
    }
    assert judge("kda-product", data) is Verdict.PROVED
    assert judge("kda-product", {**data, "within": "1/100"}) is Verdict.REFUTED
    assert judge("kda-product", {**data, "within": "0"}) is Verdict.REFUTED
    assert judge("kda-product", {**data, "radicand": "3", "within": "1"}) is Verdict.REFUTED
    above = {"alpha": [["0", "1"], "1"], "erase": erase}
    assert judge("kda-product", {**data, "factors": [above], "within": "3"}) is Verdict.REFUTED
    assert (
        judge("kda-product", {**data, "factors": [above], "within": "3", "bounded": False}) is Verdict.PROVED
    )


def test_the_rounded_replay_holds_the_exact_one() -> None:
    rounded = {**copy.deepcopy(TRUE["retention"]), "exact": False}
    assert judge("retention", rounded) is Verdict.REFUTED
    ends = (Fraction(-1, 10**40), Fraction(1, 10**40))
    for row in rounded["rows"]:
        for name in ("share", "length"):
            row[name] = [str(Fraction(value) + by) for value, by in zip(row[name], ends, strict=True)]
    assert judge("retention", rounded) is Verdict.PROVED


def test_a_strength_above_2_is_out_of_bounds() -> None:
    data: Data = {
        "matrix": [["-1", "0"], ["0", "1"]],
        "factors": [{"alpha": ["1/2", "1"], "erase": [["3", "0"], ["0", "0"]]}],
        "radicand": "0",
        "within": "0",
    }
    assert judge("kda-product", {**data, "bounded": True}) is Verdict.REFUTED
    assert judge("kda-product", {**data, "bounded": False}) is Verdict.PROVED


def test_negative_weights_show_no_contraction() -> None:
    data = {"matrix": [["2"]], "weights": ["-3"], "rows": [["1"]]}
    assert judge("contraction", data) is Verdict.REFUTED


@pytest.mark.parametrize("x", ["0", "-1/1000000000", "-1/2", "-2", "-7", "-63", "-4001/31", "-199", "-1000"])
def test_the_integer_exponential_is_within_its_error(x: str) -> None:
    near, true = retention._near_exponential(Fraction(x)), exp(Fraction(x))
    assert max(abs(near - true.low), abs(near - true.high)) < Fraction(1, 2**retention.GRID)
