"""The access counter counts by hand-checkable rules and notices every wrong count."""

import copy
from typing import Any

import pytest

from verify.checkers import access_count
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

ALONE = {"prompt": 2, "generated": 2, "branches": 0, "draft": 1}


def judged(data: Any) -> Check:
    return access_count.judge(Obligation("access-count", "a run", "E", data))


def stated(
    scheme: str, sizes: dict[str, int], kept: int, read: int, written: int, **run: int
) -> dict[str, Any]:
    counts = {"kept": kept, "read": read, "written": written}
    return {"scheme": scheme, "sizes": sizes, "runs": [{**ALONE, **run, **counts}]}


TRUE = {
    # Tokens 3 and 4 of width 5: 15 and 20 numbers.
    "cache": stated("cache", {"token": 5}, 20, 35, 10),
    "window": stated("window", {"token": 5, "window": 3}, 15, 30, 10),
    # Indices of width 2 of 3 and 4 tokens, and two tokens each time.
    "top-k": stated("top-k", {"token": 5, "index": 2, "chosen": 2}, 28, 14 + 20, 14),
    # A pooled entry at tokens 2 and 4, and the last two tokens: 3 and 4 entries.
    "pooled": stated("pooled", {"token": 5, "block": 2, "window": 2}, 20, 35, 15),
    "state": stated("state", {"state": 7}, 7, 14, 14),
    "cache, branches": stated("cache", {"token": 5}, 30, 70, 20, branches=2),
    "window, branches": stated("window", {"token": 5, "window": 3}, 30, 60, 20, branches=2),
    "state, branches": stated("state", {"state": 7}, 21, 28, 28, branches=2),
    "cache, one pass": stated("cache", {"token": 5}, 20, 20, 10, draft=2),
    "state, one pass": stated("state", {"state": 7}, 7, 7, 7, draft=2),
}


@pytest.mark.parametrize("name", TRUE)
def test_counts_made_by_hand_are_accepted(name: str) -> None:
    check = judged(TRUE[name])
    assert check.verdict is Verdict.PROVED, check.detail


@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("count", ["kept", "read", "written"])
@pytest.mark.parametrize("off", [-1, 1])
def test_a_count_that_is_off_by_one_is_refuted(name: str, count: str, off: int) -> None:
    data = copy.deepcopy(TRUE[name])
    data["runs"][0][count] += off
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert f"numbers {count}" in check.detail


def test_each_run_is_counted() -> None:
    data = copy.deepcopy(TRUE["cache"])
    data["runs"].append({**data["runs"][0], "read": 36})
    assert judged(data).verdict is Verdict.REFUTED
    assert "no run" in judged({**data, "runs": []}).detail


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scheme": "hashed"}, "no scheme"),
        ({"sizes": {"token": 5, "window": 3}}, "no scheme"),
        ({"sizes": {"token": 0}}, "are counted"),
        ({"scheme": "pooled", "sizes": {"token": 5, "block": 3, "window": 2}}, "loses tokens"),
        ({"scheme": "window", "sizes": {"token": 5, "window": 3}, "run": {"draft": 2}}, "token by token"),
        ({"run": {"draft": 0}}, "passes of 0"),
        ({"run": {"generated": 3, "draft": 2}}, "passes of 2"),
        ({"run": {"branches": 17}}, "17 branches"),
        ({"run": {"prompt": 8192}}, "8192 and 2 tokens"),
        ({"sizes": {"token": 8192}, "run": {"prompt": 8000}}, "too many numbers"),
    ],
)
def test_what_is_not_counted_is_refuted_with_the_reason(change: dict[str, Any], reason: str) -> None:
    run = {**TRUE["cache"]["runs"][0], **change.pop("run", {})}
    check = judged({**TRUE["cache"], **change, "runs": [run]})
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


@pytest.mark.parametrize("junk", [None, 0.5, "x", [], {}, -3, True, [[]]], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    assert judged({}).verdict is Verdict.REFUTED
    for name in TRUE["cache"]:
        assert judged({**TRUE["cache"], name: junk}).verdict is Verdict.REFUTED, name
    for name in TRUE["cache"]["runs"][0]:
        run = {**TRUE["cache"]["runs"][0], name: junk}
        assert judged({**TRUE["cache"], "runs": [run]}).verdict is Verdict.REFUTED, name
