"""The selection checker on planted truths and falsehoods."""

import math

import pytest

from verify.checkers import selection
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

TRUE = {"scores": ["3", "0", "0"], "kept": [0], "dropped_above": "90/1000", "dropped_below": "91/1000"}
CHOSEN = {**TRUE, "selector": ["5/2", "1", "0"], "within": "1", "shift": "0"}
WRONG_SET = {"scores": ["3", "0", "0"], "kept": [1], "dropped_above": "9/10", "best_below": "1/10"}


def word(data):
    return selection.judge(Obligation("selection", "", "E", data))


@pytest.mark.parametrize("data", [TRUE, CHOSEN, WRONG_SET, {**CHOSEN, "kept": [0, 1], "dropped_above": "0"}])
def test_true_statements_are_proved(data):
    assert word(data).verdict is Verdict.PROVED


def test_the_mass_is_the_softmax_mass():
    exact = 2 / (math.exp(3) + 2)
    assert 0.0905 < exact < 0.0906
    assert (
        word({**TRUE, "dropped_above": "905/10000", "dropped_below": "906/10000"}).verdict is Verdict.PROVED
    )


@pytest.mark.parametrize(
    "change",
    [
        {"dropped_below": "90/1000"},
        {"dropped_above": "91/1000"},
        {"best_above": "1/10"},
        {"kept": [1]},
        {"kept": [0, 0]},
        {"kept": [3]},
        {"kept": []},
        {"kept": 0},
        {"selector": ["0", "1", "0"]},
        {"selector": ["1", "0"]},
        {"within": "9/10"},
        {"shift": "1"},
        {"scores": [3.0, 0, 0]},
        {"scores": []},
        {"scores": ["1000000", "0", "0"]},
        {"dropped_above": None},
    ],
)
def test_falsehoods_and_malformed_data_are_refuted(change):
    assert word({**CHOSEN, **change}).verdict is Verdict.REFUTED


@pytest.mark.parametrize("alone", ["within", "shift"])
def test_a_distance_needs_a_selector_a_shift_and_a_size(alone):
    assert word({**TRUE, alone: CHOSEN[alone]}).verdict is Verdict.REFUTED
    assert word({**TRUE, "within": "1", "shift": "0"}).verdict is Verdict.REFUTED
    assert word({**TRUE, "selector": CHOSEN["selector"], alone: CHOSEN[alone]}).verdict is Verdict.REFUTED


def test_nothing_stated_is_nothing_shown():
    assert word({"scores": ["1", "0"], "kept": [0]}).verdict is Verdict.REFUTED
