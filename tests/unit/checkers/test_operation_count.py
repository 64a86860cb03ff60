"""Counting multiplications: true counts are accepted, each false one is named, bad sizes are refused."""

from typing import Any

import pytest

from verify.checkers import operation_count
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

TRUE = {"tokens": 6, "chunk": 3, "width": 2, "state": 48, "scores": 72, "causal": 48, "kept": 9}


def said(**changes: Any) -> Check:
    return operation_count.judge(Obligation("operation-count", "count", "E", {**TRUE, **changes}))


def test_the_true_counts_are_accepted() -> None:
    assert said().verdict is Verdict.PROVED


@pytest.mark.parametrize("name", ["state", "scores", "causal", "kept"])
def test_a_false_count_is_named(name: str) -> None:
    check = said(**{name: TRUE[name] + 1})
    assert check.verdict is Verdict.REFUTED
    assert check.detail.startswith(name)


@pytest.mark.parametrize(
    "changes", [{"chunk": 4}, {"chunk": 0}, {"tokens": 10**9}, {"width": "2"}, {"kept": None}]
)
def test_bad_sizes_are_refused(changes: dict[str, Any]) -> None:
    assert said(**changes).verdict is Verdict.REFUTED
