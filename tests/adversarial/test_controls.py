"""Correct kernels are not flagged."""

from collections.abc import Callable
from typing import Any

import pytest

from verify.checkers.kernel_certificate import recheck

HARD = ("random", "constant-key-0.97", "gate-strong", "gate-reset", "predicted-value", "integer-reset")
OURS = [
    ("kernels.gdn.recurrent:recurrent_gdn", "gdn", "float32"),
    ("kernels.gdn.chunked:chunked_gdn", "gdn", "bfloat16"),
    ("kernels.kda.recurrent:recurrent_kda", "kda", "bfloat16"),
    ("kernels.kda.chunked:chunked_kda", "kda", "float32"),
]
TRANSFORMERS = [
    ("qwen3_next.modeling_qwen3_next:torch_chunk_gated_delta_rule", "gdn"),
    ("qwen3_next.modeling_qwen3_next:torch_recurrent_gated_delta_rule", "gdn"),
    ("kimi_linear.modeling_kimi_linear:chunk_kimi_delta_attention", "kda"),
    ("kimi_linear.modeling_kimi_linear:recurrent_kimi_delta_attention", "kda"),
]
FLA = [
    ("kda.naive:naive_recurrent_kda", "kda"),
    ("kda.naive:naive_chunk_kda", "kda"),
    ("gated_delta_rule.naive:naive_recurrent_gated_delta_rule", "gdn"),
    ("gated_delta_rule.naive:naive_chunk_gated_delta_rule", "gdn"),
]
PEERS = [
    (f"transformers.models.{name}.__wrapped__", mechanism, "transformers") for name, mechanism in TRANSFORMERS
]
PEERS += [(f"fla.ops.{name}", mechanism, "fla") for name, mechanism in FLA]


def check(result: dict[str, Any]) -> None:
    assert result["verdict"] == "sampled", result["summary"]
    assert result["findings"] == []
    assert result["reproducer"] is None
    assert result["samples"]
    assert recheck(result) == []


@pytest.mark.parametrize(("target", "mechanism", "dtype"), OURS)
def test_our_kernels(
    target: str, mechanism: str, dtype: str, certified: Callable[..., dict[str, Any]]
) -> None:
    check(certified(target, mechanism, dtype=dtype, classes=HARD))


@pytest.mark.peers
@pytest.mark.parametrize(("target", "mechanism", "convention"), PEERS)
def test_peers(
    target: str, mechanism: str, convention: str, certified: Callable[..., dict[str, Any]]
) -> None:
    check(certified(target, mechanism, convention, classes=HARD[:4]))
