"""Runs in pieces: the constructor's literal runs, planted falsehoods and bad data."""

from typing import Any

import pytest

from derivations.kernel._pieces import in_pieces
from verify.checkers.split_run import judge
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict
from verify.numbers.formats import BFLOAT16, FLOAT32

STEP = {"a": ["1/2"], "k": ["1"], "beta": "1/2", "v": ["3"], "q": ["2"]}
ONE: dict[str, Any] = {
    "state": [["4"]],
    "steps": [STEP, STEP],
    "runs": [{"cuts": [1], "outputs": [["5"], ["17/4"]], "final": [["17/8"]]}],
    "compute": None,
    "passed": None,
}
"""4 → 2 → 2 + (3 − 2)/2 = 5/2 → 5/4 → 5/4 + (3 − 5/4)/2 = 17/8."""


def judged(value: Any) -> Check:
    return judge(Obligation("split-run", "pieces", "E", value))


def test_a_run_by_hand() -> None:
    assert judged(ONE).verdict is Verdict.PROVED
    assert judged(ONE | {"differs": True}).verdict is Verdict.REFUTED


def test_pieces_agree_unless_their_state_is_rounded_or_forgotten() -> None:
    assert judge(in_pieces("exact")).verdict is Verdict.PROVED
    assert judge(in_pieces("bfloat16", BFLOAT16)).verdict is Verdict.PROVED
    assert judge(in_pieces("passed on in bfloat16", FLOAT32, BFLOAT16)).verdict is Verdict.REFUTED
    assert judge(in_pieces("forgotten", forget=True)).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    "changed",
    [
        {"runs": []},
        {"runs": [{**ONE["runs"][0], "cuts": []}]},
        {"runs": [{**ONE["runs"][0], "cuts": [3]}]},
        {"runs": [{**ONE["runs"][0], "cuts": [1, 1]}]},
        {"runs": [{**ONE["runs"][0], "final": [["2"]]}]},
        {"runs": [{**ONE["runs"][0], "outputs": [["5"]]}]},
        {"steps": [{**STEP, "k": ["1", "0"]}]},
        {"steps": [{**STEP, "v": []}]},
        {"compute": {"precision": -1, "min_exponent": 0}},
        {"state": None},
        {"differs": 1},
    ],
)
def test_bad_data_is_refuted_with_a_reason(changed: dict[str, Any]) -> None:
    found = judged(ONE | changed)
    assert found.verdict is Verdict.REFUTED
    assert found.detail
