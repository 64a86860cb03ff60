"""Both SMT solvers read one text; each answer becomes the right word."""

import sys
from types import ModuleType

import pytest

from verify.engines import cvc5_engine, smtlib, z3_engine
from verify.model.errors import EnvironmentProblem
from verify.model.evidence import Evidence, Obligation
from verify.model.judges import ask
from verify.model.verdict import Verdict

ENGINES = pytest.mark.parametrize("engine", [z3_engine, cvc5_engine], ids=["z3", "cvc5"])
REALS = "(set-logic QF_NRA)\n(declare-const x Real)(declare-const y Real)\n"
SQUARES = REALS + "(assert (< (+ (* x x) (* y y)) (* 2.0 x y)))\n(check-sat)\n"
HALF = REALS + "(assert (= (* 2.0 x) 1.0))\n(assert (= y (* x x)))\n(check-sat)\n"


def smt(text: object, expect: str = "unsat", logic: str = "QF_NRA") -> Obligation:
    return Obligation("smt", "a query", "S", {"smtlib": text, "expect": expect, "logic": logic})


@ENGINES
@pytest.mark.parametrize(
    ("text", "expect", "word"),
    [
        (SQUARES, "unsat", Verdict.PROVED),
        (SQUARES, "sat", Verdict.REFUTED),
        (HALF, "sat", Verdict.PROVED),
        (HALF, "unsat", Verdict.REFUTED),
    ],
)
def test_an_answer_is_compared_with_the_expected_one(
    engine: ModuleType, text: str, expect: str, word: Verdict
) -> None:
    assert engine.judge(smt(text, expect)).verdict is word


@ENGINES
def test_a_model_is_recorded(engine: ModuleType) -> None:
    detail = engine.judge(smt(HALF, "sat")).detail
    assert "x = " in detail
    assert "y = " in detail


@ENGINES
def test_a_query_that_takes_too_long_stays_undecided(
    engine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtlib, "TIME_LIMIT_MS", 200)
    cubes = "(set-logic QF_NIA)\n(declare-const x Int)(declare-const y Int)(declare-const z Int)\n"
    cubes += "(assert (= (+ (* x x x) (* y y y) (* z z z)) 42))\n(check-sat)\n"
    check = engine.judge(smt(cubes, logic="QF_NIA"))
    assert check.verdict is Verdict.UNDECIDED
    assert "unknown" in check.detail


@ENGINES
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "no query"),
        (REALS + "(assert (= x 1.0))\n", "only (check-sat)"),
        (SQUARES + "(check-sat)\n", "only (check-sat)"),
        (SQUARES.replace("QF_NRA", "QF_LRA"), "does not set the logic"),
    ],
)
def test_evidence_that_is_no_query_is_refused(engine: ModuleType, text: object, reason: str) -> None:
    check = engine.judge(smt(text))
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


@ENGINES
def test_an_impossible_expectation_is_refused(engine: ModuleType) -> None:
    assert engine.judge(smt(SQUARES, expect="unknown")).verdict is Verdict.REFUTED


@ENGINES
@pytest.mark.parametrize("body", ["(assert (= x unknown_name))", "(assert (= x 1.0)", "(assert (zzz x))"])
def test_text_a_solver_cannot_read_is_undecided(engine: ModuleType, body: str) -> None:
    check = engine.judge(smt(f"{REALS}{body}\n(check-sat)\n"))
    assert check.verdict is Verdict.UNDECIDED
    assert "cannot treat" in check.detail


@ENGINES
def test_a_missing_solver_is_named_with_its_package(
    engine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, engine.NAME, None)
    with pytest.raises(EnvironmentProblem, match="pip install"):
        engine.judge(smt(SQUARES))


def test_one_missing_solver_leaves_a_query_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Evidence(smt(SQUARES), tuple(ask("verify.engines", smt(SQUARES))))
    assert both.verdict is Verdict.PROVED
    monkeypatch.setitem(sys.modules, "cvc5", None)
    one = Evidence(smt(SQUARES), tuple(ask("verify.engines", smt(SQUARES))))
    assert one.verdict is Verdict.UNDECIDED
