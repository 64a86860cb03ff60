"""Kernels whose outputs are right and whose gradients are wrong: refuted with their reason."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import BROKEN, as_broken

from verify.audit.convention.convention import Convention
from verify.checkers.kernel_certificate import recheck

KERNELS = [
    ("truncated_backward", "chunked_gdn", "random", "wrong gradient of k, v, the gate, β, the initial state"),
    ("unscaled_backward", "recurrent_delta", "random", "gradient of q off by a factor"),
    ("forgotten_state_gradient", "recurrent_kda", "random", "gradient of the final state ignored"),
    ("mask_after_exp", "chunked_kda", "gate-strong", "gradient of an exponential that the mask hides"),
    ("ungated_backward", "recurrent_gdn", "random", "gradient of the gate off by a factor"),
    ("unweighted_softmax_backward", "tiled_softmax", "random", "wrong gradient of q, k"),
]
IDS = [file for file, *_ in KERNELS]


def named(file: str, function: str) -> tuple[str, Convention]:
    """A target, and our convention but for running sums of gates and no packed sequences."""
    target = f"{BROKEN / file}.py:{function}"
    ours = Convention.load("ours", function.split("_")[1], target)
    return target, as_broken(ours, gate_sums="running")


@pytest.mark.parametrize(("file", "function", "kind", "reason"), KERNELS, ids=IDS)
def test_a_wrong_gradient_is_refuted_with_its_reason(
    file: str,
    function: str,
    kind: str,
    reason: str,
    certified: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    target, convention = named(file, function)
    result = certified(target, convention.mechanism, convention, classes=[kind], gradients=True)
    assert result["verdict"] == "refuted"
    assert [cell["verdict"] for cell in result["cells"]] == ["sampled"] * 4
    assert [cell["verdict"] for cell in result["gradients"]] == ["refuted"]
    assert [finding["reason"] for finding in result["findings"]] == [reason]
    assert recheck(result) == []
    script = tmp_path / result["reproducer"]["script"]
    assert len(script.read_text().splitlines()) <= 30
    run = subprocess.run(
        [sys.executable, "-P", script.name], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "largest error" in run.stdout


def test_a_wrong_gradient_is_no_fault_of_the_output(certified: Callable[..., dict[str, Any]]) -> None:
    target, convention = named("ungated_backward", "recurrent_gdn")
    assert certified(target, "gdn", convention, classes=["random"])["verdict"] == "sampled"


def test_a_gradient_that_overflows_passes_where_gates_are_mild(
    certified: Callable[..., dict[str, Any]],
) -> None:
    target, convention = named("mask_after_exp", "chunked_kda")
    result = certified(target, "kda", convention, classes=["random"], gradients=True)
    assert result["verdict"] == "sampled"
    assert [cell["verdict"] for cell in result["gradients"]] == ["sampled"]
