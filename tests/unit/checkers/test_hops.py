"""The hop checker on planted truths and falsehoods."""

import pytest

from verify.checkers import hops
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

CHAIN = {
    "reads": [[], [0], [1], [2]],
    "layers": 2,
    "reached": [[3, 1], [2, 0]],
    "unreached": [[3, 0], [0, 1]],
}


def word(data):
    return hops.judge(Obligation("hops", "", "E", data)).verdict


def test_a_chain_moves_one_step_per_layer():
    assert word(CHAIN) is Verdict.PROVED


def test_no_layer_leaves_every_node_alone():
    alone = {**CHAIN, "layers": 0, "reached": [[1, 1]], "unreached": [[1, 0]]}
    assert word(alone) is Verdict.PROVED


@pytest.mark.parametrize(
    "change",
    [
        {"layers": 1},
        {"layers": 3},
        {"layers": -1},
        {"layers": True},
        {"reached": [[0, 3]]},
        {"unreached": [[3, 1]]},
        {"reads": [[], [0], [1], [4]]},
        {"reads": [[], [0], [1]]},
        {"reads": 3},
        {"reached": [[3]]},
        {"reached": [["3", 1]]},
        {"reached": [], "unreached": []},
    ],
)
def test_falsehoods_and_malformed_data_are_refuted(change):
    assert word({**CHAIN, **change}) is Verdict.REFUTED
