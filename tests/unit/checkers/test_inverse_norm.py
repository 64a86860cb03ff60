"""The bound on the inverse of a block of a softmax matrix."""

from typing import Any

import numpy as np
import pytest

from verify.checkers import inverse_norm
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

QUERIES, KEYS = ["-3/2", "0", "2"], ["-1", "1/2", "1"]


def word(**changes: Any) -> Verdict:
    data: dict[str, Any] = {
        "queries": QUERIES,
        "keys": KEYS,
        "rows": [0, 2],
        "columns": [0, 1],
        "below": "100",
    }
    return inverse_norm.judge(Obligation("inverse-norm", "test", "B", data | changes)).verdict


def in_floats(rows: list[int], columns: list[int]) -> float:
    scores = np.exp(np.outer([-1.5, 0.0, 2.0], [-1.0, 0.5, 1.0]))
    block = (scores / scores.sum(axis=1, keepdims=True))[np.ix_(rows, columns)]
    return float(np.sum(np.linalg.inv(block) ** 2))


@pytest.mark.parametrize(
    ("rows", "columns"), [([0, 2], [0, 1]), ([0, 1, 2], [0, 1, 2]), ([1], [2]), ([2, 0], [1, 2])]
)
def test_the_bound_is_sharp(rows: list[int], columns: list[int]) -> None:
    near = in_floats(rows, columns)
    assert word(rows=rows, columns=columns, below=str(int(near * 10001)) + "/10000") is Verdict.PROVED
    assert word(rows=rows, columns=columns, below=str(int(near * 9999)) + "/10000") is Verdict.REFUTED


@pytest.mark.parametrize(
    "changes",
    [
        {"queries": ["1", "0", "1"]},
        {"rows": [0, 0]},
        {"columns": [1]},
        {"rows": [0, 3]},
        {"rows": [], "columns": []},
        {"below": "-1"},
        {"keys": None},
        {"rows": [0, True]},
    ],
)
def test_anything_else_is_refuted(changes: dict[str, Any]) -> None:
    assert word(**changes) is Verdict.REFUTED
