"""Kernels that are right when called plainly: packed, strided or batched inputs show the fault."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from conftest import BROKEN

from verify.audit.convention.convention import Convention
from verify.checkers.kernel_certificate import recheck


@pytest.mark.parametrize(
    ("file", "function", "packed", "broken"),
    [
        ("unpacked", "recurrent_gdn", "cu_seqlens", "packed sequences"),
        ("assumed_contiguous", "recurrent_kda", "", "strided inputs"),
        ("mixed_sequences", "recurrent_gdn", "", "separate sequences and heads"),
    ],
)
def test_the_property_that_fails_is_named(
    file: str, function: str, packed: str, broken: str, certified: Callable[..., dict[str, Any]]
) -> None:
    target = f"{BROKEN / file}.py:{function}"
    mechanism = function.split("_")[1]
    convention = dataclasses.replace(Convention.load("ours", mechanism, target), cu_seqlens=packed)
    result = certified(target, mechanism, convention, classes=["integer"])
    assert [cell["verdict"] for cell in result["cells"]] == ["sampled"] * 4
    refuted = {p["name"] for p in result["properties"] if p["verdict"] == "refuted"}
    # A kernel that mixes sequences is wrong on any batch, however it is arranged.
    others = {"strided inputs", "batch permutation", "batch invariance"}
    assert refuted == {broken} | (others if file == "mixed_sequences" else set())
    assert f"{broken}: wrong numbers" in [finding["reason"] for finding in result["findings"]]
    assert recheck(result) == []


def test_a_refusal_of_packed_sequences_is_a_fault_where_they_are_declared(
    certified: Callable[..., dict[str, Any]],
) -> None:
    target = f"{BROKEN / 'mixed_sequences'}.py:recurrent_gdn"
    result = certified(target, "gdn", "ours", classes=["integer"])
    assert "packed sequences fail" in [finding["reason"] for finding in result["findings"]]
