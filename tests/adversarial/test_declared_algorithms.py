"""Declaring an unstable algorithm does not make its errors acceptable where it loses the result."""

import dataclasses
from collections.abc import Callable
from typing import Any

from conftest import BROKEN

from verify.audit.convention.convention import Convention
from verify.checkers.kernel_certificate import recheck


def test_a_declared_doubling_inverse_is_called_unstable(certified: Callable[..., dict[str, Any]]) -> None:
    """In float32 and chunks of 32, on nearly identical keys."""
    target = f"{BROKEN / 'declared'}.py:chunked_gdn"
    ours = Convention.load("ours", "gdn", target)
    convention = dataclasses.replace(
        ours,
        cu_seqlens="",
        chunk_argument="",
        chunk_size=32,
        inverse="doubling",
        gate_sums="running",
        extra={**ours.extra, "chunk_size": 32},
    )
    result = certified(target, "gdn", convention, classes=["constant-key-0.97"])
    assert result["verdict"] == "refuted"
    assert result["summary"].startswith("Refuted: unstable algorithm (")
    assert [finding["reason"] for finding in result["findings"]] == ["unstable algorithm"]
    finding = result["findings"][0]
    assert "bmm in predicted/doubling.py:" in finding["detail"]
    assert "class constant-key-0.97" in finding["evidence"]
    assert {p["verdict"] for p in result["properties"]} <= {"sampled", None}
    assert recheck(result) == []
