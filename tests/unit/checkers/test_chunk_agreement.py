"""The chunk replay: it accepts what is so, and notices a change of any number it is given."""

import copy
from typing import Any

import pytest

from derivations.chunk._replay import DECAYS, ONES, in_numbers
from verify.checkers import chunk_agreement, linear_attention
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict


def judged(data: dict[str, Any]) -> Verdict:
    return chunk_agreement.judge(Obligation("chunk-agreement", "test", "E", data)).verdict


def data(erases: bool = True) -> dict[str, Any]:
    return copy.deepcopy(dict(in_numbers("test", DECAYS if erases else ONES, erases).data))


@pytest.mark.parametrize("erases", [True, False])
def test_the_definition_agrees_with_both_replayed_forms(erases: bool) -> None:
    assert judged(data(erases)) is Verdict.PROVED


@pytest.mark.parametrize("name", ["queries", "keys", "values", "decays", "initial"])
def test_any_changed_input_is_noticed(name: str) -> None:
    changed = data()
    rows = [list(row) for row in changed[name]]
    rows[0][0] = "17/3"
    assert judged(changed | {name: rows}) is Verdict.REFUTED


def test_a_changed_strength_output_state_or_kind_is_noticed() -> None:
    right = data()
    assert judged(right | {"strengths": ["7", *right["strengths"][1:]]}) is Verdict.REFUTED
    assert judged(right | {"erases": False}) is Verdict.REFUTED
    for chunk in range(len(right["chunks"])):
        for name in ("outputs", "final"):
            wrong = copy.deepcopy(right)
            wrong["chunks"][chunk][name][-1][-1] = "1/97"
            assert judged(wrong) is Verdict.REFUTED


@pytest.mark.parametrize(
    "broken",
    [
        {"chunks": []},
        {"keys": [["1", "2"]]},
        {"erases": "yes"},
        {"initial": [["1"], ["2"]]},
        {"decays": None},
    ],
    ids=repr,
)
def test_data_that_does_not_fit_together_is_refuted(broken: dict[str, Any]) -> None:
    assert judged(data() | broken) is Verdict.REFUTED


def test_an_empty_chunk_is_refuted() -> None:
    wrong = data()
    wrong["chunks"][0]["size"] = 0
    assert judged(wrong) is Verdict.REFUTED


@pytest.mark.parametrize(
    ("across", "expected"), [("causal", Verdict.REFUTED), ("all", Verdict.PROVED), ("no", Verdict.REFUTED)]
)
def test_linear_attention_may_see_other_chunks_whole(across: str, expected: Verdict) -> None:
    ones = [[1], [1], [1]]
    given = {
        "queries": ones,
        "keys": ones,
        "values": ones,
        "chunk": 2,
        "mask": "causal",
        "across": across,
        "outputs": [[2], [3], [3]],
    }
    assert linear_attention.judge(Obligation("linear-attention", "test", "E", given)).verdict is expected
