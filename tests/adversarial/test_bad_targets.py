"""Targets that crash, hang or break their contract: a certificate all the same, with one clear sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.audit.convention.convention import Convention
from verify.checkers.kernel_certificate import recheck

TARGET = f"{Path(__file__).parents[1] / 'unit' / 'audit' / 'misbehaving.py'}:misbehave"


def behaving(behaviour: str) -> Convention:
    extra = {"output_final_state": True, "behaviour": behaviour}
    return Convention(name="misbehaving", mechanism="gdn", extra=extra, state_dtype="at-least-float32")


@pytest.mark.parametrize(
    ("behaviour", "kind", "reason", "said"),
    [
        ("raise", "raised", "the target raises an error", "RuntimeError: cannot do"),
        ("exit", "killed", "the target ends its process", "exit status 7"),
        ("shape", "wrong-shape", "wrong shape", "output came back with shape"),
        ("dtype", "wrong-dtype", "wrong dtype", "output came back in float64"),
        ("mutate", "inputs-mutated", "the target writes into its inputs", "wrote into its input 'beta'"),
        ("one", "wrong-return", "the target returns something else than the convention says", "a Tensor"),
    ],
)
def test_a_broken_contract_is_a_finding(
    behaviour: str, kind: str, reason: str, said: str, certified: Callable[..., dict[str, Any]]
) -> None:
    result = certified(TARGET, "gdn", behaving(behaviour), classes=["random"])
    assert result["verdict"] == "refuted"
    assert len(result["cells"]) == 4
    broken = [cell["problem"] for cell in result["cells"] if cell["problem"] is not None]
    assert kind in {problem["kind"] for problem in broken}
    finding = next(finding for finding in result["findings"] if finding["reason"] == reason)
    assert said in finding["detail"]
    assert "\n" not in result["summary"]
    assert recheck(result) == []


def test_values_that_are_not_finite(certified: Callable[..., dict[str, Any]]) -> None:
    result = certified(TARGET, "gdn", behaving("nan"), classes=["random"])
    assert result["verdict"] == "refuted"
    assert "not finite on mild inputs" in [finding["reason"] for finding in result["findings"]]
    assert all(cell["output"]["nonfinite"] for cell in result["cells"])
    assert recheck(result) == []


def test_a_target_that_hangs(certified: Callable[..., dict[str, Any]]) -> None:
    result = certified(TARGET, "gdn", behaving("hang"), classes=["random"], time_limit_s=0.2)
    assert result["verdict"] == "refuted"
    assert [cell["verdict"] for cell in result["cells"]] == ["refuted"] * 3 + ["undecided"]
    assert "not run: 3 cells in a row hit the time limit" in result["cells"][-1]["problem"]["message"]
    assert recheck(result) == []
