"""The inner product checker on planted truths and falsehoods."""

import pytest

from verify.checkers import near_orthogonal
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

TRUE = {
    "keys": [["1", "1", "1"], ["1", "-1", "1"], ["-1", "1", "1"]],
    "count": 3,
    "width": 3,
    "within": "1/3",
}


def word(data):
    return near_orthogonal.judge(Obligation("near-orthogonal", "", "E", data)).verdict


def test_the_bound_is_reached_and_holds():
    assert word(TRUE) is Verdict.PROVED


@pytest.mark.parametrize(
    "change",
    [
        {"within": "33/100"},
        {"within": "0"},
        {"count": 4},
        {"width": 2},
        {"keys": [["1", "1", "1"], ["1", "-1", "2"], ["-1", "1", "1"]]},
        {"keys": [["1", "1", "1"], ["-1", "-1", "-1"], ["1", "-1", "1"]]},
        {"keys": [["0", "0", "0"]] * 3},
        {"keys": [["1", "1", "1"]] * 3},
        {"keys": [[1.5, "1", "1"]] * 3},
        {"keys": []},
        {"within": None},
    ],
)
def test_falsehoods_and_malformed_data_are_refuted(change):
    assert word({**TRUE, **change}) is Verdict.REFUTED
