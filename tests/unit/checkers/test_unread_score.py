"""The checker of unread scores accepts a true witness, rejects planted falsehoods and never raises."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from verify.checkers.unread_score import judge
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

Data = dict[str, Any]
TRUE: Data = {
    "first": [["0", "0"], ["0", "0"]],
    "second": [["0", "4"], ["0", "0"]],
    "values": [["1", "0"], ["0", "1"]],
    "read": [[0, 0], [1, 0], [1, 1]],
    "pair": [0, 1],
    "answer": [["1/2", "1/2"], ["1/2", "1/2"]],
    "gap": "12/25",
}


def judged(data: Any) -> Check:
    return judge(Obligation("unread-score", "a witness", "E", data))


def test_a_true_witness_is_accepted() -> None:
    check = judged(TRUE)
    assert check.verdict is Verdict.PROVED, check.detail


def test_the_detail_says_how_far_the_answer_is_off() -> None:
    assert judged({**TRUE, "answer": [["1/2", "1/2"], ["9", "9"]]}).detail.endswith("0.482014, 3 pairs read")
    assert (
        judged({**TRUE, "answer": [["7/2", "1/2"], ["0", "0"]]}).detail.split("off by ")[1].startswith("3.48")
    )


def put(name: str, value: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        data[name] = value

    return change


FALSEHOODS = {
    "the pair was read": (put("read", [[0, 0], [0, 1]]), "was read"),
    "another score differs too": (put("second", [["0", "4"], ["1", "0"]]), "differ at"),
    "nothing differs": (put("second", TRUE["first"]), "differ at"),
    "the outputs are not that far apart": (put("gap", "49/100"), "only certainly"),
    "no gap": (put("gap", "0"), "separates nothing"),
    "raised too little": (put("second", [["0", "1"], ["0", "0"]]), "only certainly"),
    "the pair is outside": (put("pair", [0, 2]), "outside"),
    "a read pair is outside": (put("read", [[2, 0]]), "outside"),
    "the answer has another shape": (put("answer", [["1/2"], ["1/2"]]), "shape"),
    "the scores are not square": (put("first", [["0", "0"]]), "need"),
}


@pytest.mark.parametrize("name", FALSEHOODS)
def test_planted_falsehoods_are_refuted(name: str) -> None:
    change, why = FALSEHOODS[name]
    data = copy.deepcopy(TRUE)
    change(data)
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert why in check.detail, check.detail


@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("value", [None, [], "x", 0.5, [[0.5]], [["a"]], {}, [[-1, 0]], "1/0"])
def test_bad_data_is_refused_without_raising(name: str, value: object) -> None:
    for data in ({**TRUE, name: value}, {key: item for key, item in TRUE.items() if key != name}):
        if name == "read" and value == []:
            continue
        assert judged(data).verdict is Verdict.REFUTED
    assert judged(value).verdict is Verdict.REFUTED
