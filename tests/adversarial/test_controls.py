"""Correct kernels are not flagged."""

from collections.abc import Callable
from typing import Any

import pytest

from verify.audit.convention.convention import Convention
from verify.audit.inputs.cells import classes
from verify.audit.mechanism import MECHANISMS
from verify.checkers.kernel_certificate import recheck

_HARD = (
    "random",
    "constant-key-0.97",
    "gate-strong",
    "gate-reset",
    "predicted-value",
    "integer-reset",
    "logits-rising",
    "logits-offset",
    "integer",
)


def hard(mechanism: str) -> list[str]:
    """The hard classes that the mechanism has."""
    return [name for name in _HARD if name in classes(MECHANISMS[mechanism])]


OURS = [
    ("kernels.gdn.recurrent:recurrent_gdn", "gdn", "float32"),
    ("kernels.gdn.chunked:chunked_gdn", "gdn", "bfloat16"),
    ("kernels.kda.recurrent:recurrent_kda", "kda", "bfloat16"),
    ("kernels.kda.chunked:chunked_kda", "kda", "float32"),
    ("kernels.delta.recurrent:recurrent_delta", "delta", "float16"),
    ("kernels.delta.chunked:chunked_delta", "delta", "float32"),
    ("kernels.linear.recurrent:recurrent_linear", "linear", "bfloat16"),
    ("kernels.linear.chunked:chunked_linear", "linear", "float32"),
    ("kernels.softmax.recurrent:recurrent_softmax", "softmax", "float32"),
    ("kernels.softmax.tiled:tiled_softmax", "softmax", "bfloat16"),
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
    ("delta_rule.naive:delta_rule_recurrence", "delta"),
    ("delta_rule.naive:delta_rule_chunkwise", "delta"),
    ("linear_attn.naive:naive_recurrent_linear_attn", "linear"),
    ("linear_attn.naive:naive_chunk_linear_attn", "linear"),
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
    result = certified(target, mechanism, dtype=dtype, classes=hard(mechanism), gradients=True)
    check(result)
    assert result["gradients"]


@pytest.mark.peers
@pytest.mark.parametrize(("target", "mechanism", "convention"), PEERS)
def test_peers(
    target: str, mechanism: str, convention: str, certified: Callable[..., dict[str, Any]]
) -> None:
    takes_state = Convention.load(convention, mechanism, target).takes_initial_state
    usable = [name for name in hard(mechanism) if takes_state or name != "predicted-value"]
    check(certified(target, mechanism, convention, classes=usable[:4]))


GRADIENTS = (
    ("transformers.models.qwen3_next.modeling_qwen3_next:torch_chunk_gated_delta_rule.__wrapped__", "gdn"),
    ("fla.ops.gated_delta_rule.naive:naive_recurrent_gated_delta_rule", "gdn"),
    ("fla.ops.delta_rule.naive:delta_rule_chunkwise", "delta"),
    (
        "transformers.models.kimi_linear.modeling_kimi_linear:chunk_kimi_delta_attention.__wrapped__",
        "kda",
    ),
)


@pytest.mark.peers
@pytest.mark.parametrize(("target", "mechanism"), GRADIENTS)
def test_gradients_of_peers(target: str, mechanism: str, certified: Callable[..., dict[str, Any]]) -> None:
    convention = target.split(".")[0]
    stateful = Convention.load(convention, mechanism, target).takes_initial_state
    wanted = {"random", "gate-strong", "gate-reset"} | ({"predicted-value"} if stateful else set())
    names = [name for name in hard(mechanism) if name in wanted]
    check(certified(target, mechanism, convention, classes=names, gradients=True))


@pytest.mark.peers
def test_naive_chunk_kda_has_no_gradients_at_strong_gates(certified: Callable[..., dict[str, Any]]) -> None:
    """Its forward pass is right at any gate; its gradients are not finite once 63|g| > 88.7."""
    target = "fla.ops.kda.naive:naive_chunk_kda"
    result = certified(target, "kda", "fla", classes=["random", "gate-strong"], gradients=True)
    assert {cell["verdict"] for cell in result["cells"]} == {"sampled"}
    assert [cell["verdict"] for cell in result["gradients"]] == ["sampled", "refuted"]
    assert [f["reason"] for f in result["findings"]] == ["gradient of an exponential that the mask hides"]
    assert "63·1.4" in result["findings"][0]["evidence"]
    assert recheck(result) == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_torch_attention(dtype: str, certified: Callable[..., dict[str, Any]]) -> None:
    name = "torch.nn.functional:scaled_dot_product_attention"
    check(certified(name, "softmax", "sdpa", dtype=dtype, classes=hard("softmax"), gradients=True))
