"""The recall checker on planted truths and falsehoods."""

import pytest

from verify.checkers import recall
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

TRUE = {
    "keys": [["1", "0"], ["0", "1"]],
    "queries": [["2", "0"], ["0", "2"]],
    "bits": [["1", "0"], ["0", "0"]],
}


def word(data):
    return recall.judge(Obligation("recall", "", "E", data)).verdict


def test_a_readable_history_is_proved():
    assert word(TRUE) is Verdict.PROVED


@pytest.mark.parametrize(
    "change",
    [
        {"queries": [["0", "2"], ["2", "0"]]},
        {"queries": [["0", "0"], ["0", "2"]]},
        {"bits": [["1", "0"], ["2", "0"]]},
        {"bits": [["1", "0"]]},
        {"bits": [[0.5, "0"], ["0", "0"]]},
        {"keys": [["1"], ["0", "1"]]},
        {"keys": [["1"], ["0"]]},
        {"queries": [["2", "0"], ["0", "3"]]},
        {"queries": [["2", "1/9"], ["0", "2"]]},
        {"queries": [["2"], ["0"]]},
        {"queries": [["0", "0"], ["0", "0"]], "bits": [["1", "0"], ["1", "0"]]},
        {"queries": [["-2", "0"], ["0", "-2"]], "bits": [["1", "0"], ["1", "0"]]},
        {"keys": [["1", "0"], ["1", "0"]], "queries": [["2", "0"], ["2", "0"]], "bits": [["1"], ["1"]]},
        {"keys": [["0"], ["0"]], "queries": [["0"], ["0"]], "bits": [["1"], ["1"]]},
        {"keys": [["0"]], "queries": [["0"]], "bits": [["1"]]},
        {"same_as": [["0", "0"], ["0", "1"]]},
        {"parities": [["1", "0", "0", "1"]]},
        {"keys": None},
    ],
)
def test_falsehoods_and_malformed_data_are_refuted(change):
    assert word({**TRUE, **change}) is Verdict.REFUTED


SHARED = {
    **TRUE,
    "same_as": [["0", "0"], ["0", "1"]],
    "parities": [["1", "0", "0", "1"], ["0", "1", "0", "0"]],
}


def test_a_shared_state_is_proved():
    assert word(SHARED) is Verdict.PROVED


@pytest.mark.parametrize(
    "change",
    [
        {"parities": [["1", "0", "0", "0"]]},
        {"parities": [["1", "0", "0"]]},
        {"parities": [["2", "0", "0", "0"]]},
        {"parities": [["1/3", "0", "0", "1/3"]]},
        {"same_as": [["0", "0", "0", "1"]]},
        {"same_as": [["1", "0"], ["0", "0"]]},
        {"same_as": [["1", "0"], ["0", "2"]]},
        {"same_as": None},
    ],
)
def test_states_that_differ_are_refuted(change):
    assert word({**SHARED, **change}) is Verdict.REFUTED
