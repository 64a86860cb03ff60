"""The compatible functions beside flash-linear-attention's and Transformers' own.

On small integers, whose every intermediate both sides hold exactly, they must agree to the last bit; on
random numbers both must be near the reference in float64: a rounding error in float32 is some 2^-24 of the
size, a wrong formula errs by the size itself, and the line between the two is their geometric mean, 2^-12.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from compat_peers import parameters

import kernels.compat.fla
import kernels.compat.transformers
from kernels.delta.reference import reference_delta
from kernels.dplr.reference import reference_dplr
from kernels.gdn.reference import reference_gdn
from kernels.gdn2.reference import reference_gdn2
from kernels.kda.reference import reference_kda
from kernels.linear.reference import reference_linear
from kernels.mamba2.reference import reference_mamba2

pytestmark = pytest.mark.peers
LINE = 2.0**-12
QWEN = "transformers.models.qwen3_next.modeling_qwen3_next"
KIMI = "transformers.models.kimi_linear.modeling_kimi_linear"
DELTA, LINEAR, GLA = "fla.ops.delta_rule", "fla.ops.linear_attn", "fla.ops.simple_gla"
GDN, KDA, GDN2, DPLR = (f"fla.ops.{x}" for x in ("gated_delta_rule", "kda", "gdn2", "generalized_delta_rule"))
DPLR_NAIVE = f"{DPLR}.dplr.naive"


@dataclass(frozen=True)
class Case:
    """A peer's function; what our reference calls the tensors it takes, in its order; options of both."""

    module: str
    function: str
    tensors: tuple[str, ...]
    reference: Any
    options: dict[str, Any] = field(default_factory=dict)
    of_reference: dict[str, Any] = field(default_factory=dict)
    heads_first: bool = False
    grouped: bool = False
    state: bool = True
    interpreted: bool = False

    @property
    def id(self) -> str:
        return "-".join([self.function, *self.options])

    @property
    def ours(self) -> Any:
        library = kernels.compat.transformers if "transformers" in self.module else kernels.compat.fla
        return getattr(library, self.function)

    def tokens(self) -> int:
        return 64 if self.function == "naive_chunk_linear_attn" else 5 if self.interpreted else 32


Q = ("q", "k", "v")
STATE = {"output_final_state": True}
RAW = {"use_qk_l2norm_in_kernel": True, "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True}
OUR_RAW = {"qk_l2norm": True, "beta_logits": True}
NORM = {"use_qk_l2norm_in_kernel": True} | STATE, {"qk_l2norm": True}
BY_TOKEN, BY_CHANNEL = (*Q, "g", "beta"), (*Q, "gk", "beta")
LOW_RANK, GATED = (*Q, "a", "b", "gk"), (*Q, "gk", "erase", "write")
CHUNK = {"chunk_size": 16} | STATE
CASES = [
    Case(f"{KDA}.naive", "naive_recurrent_kda", BY_CHANNEL, reference_kda, STATE, grouped=True),
    Case(f"{KDA}.naive", "naive_chunk_kda", BY_CHANNEL, reference_kda, CHUNK, grouped=True),
    Case(
        f"{GDN}.naive",
        "naive_recurrent_gated_delta_rule",
        (*Q, "beta", "g"),
        reference_gdn,
        {"scale": 0.25} | STATE,
        {"scale": 0.25},
    ),
    Case(f"{GDN}.naive", "naive_chunk_gated_delta_rule", BY_TOKEN, reference_gdn, CHUNK),
    Case(f"{DELTA}.naive", "delta_rule_recurrence", (*Q, "beta"), reference_delta, heads_first=True),
    Case(
        f"{DELTA}.naive",
        "delta_rule_chunkwise",
        (*Q, "beta"),
        reference_delta,
        {"chunk_size": 16},
        heads_first=True,
        state=False,
    ),
    Case(DPLR_NAIVE, "dplr_recurrence", LOW_RANK, reference_dplr, heads_first=True),
    Case(DPLR_NAIVE, "dplr_chunkwise", LOW_RANK, reference_dplr, {"chunk_size": 16}, heads_first=True),
    Case(f"{GDN2}.naive", "naive_recurrent_gdn2", GATED, reference_gdn2, STATE),
    Case(f"{GDN2}.naive", "naive_chunk_gdn2", GATED, reference_gdn2, CHUNK),
    Case(f"{LINEAR}.naive", "naive_recurrent_linear_attn", Q, reference_linear, STATE),
    Case(
        f"{LINEAR}.naive",
        "naive_chunk_linear_attn",
        Q,
        reference_linear,
        {"scale": 2.0},
        {"scale": 2.0},
        state=False,
    ),
    Case(f"{GLA}.naive", "naive_recurrent_simple_gla", (*Q, "g"), reference_mamba2, {}, {"scale": 0.5}),
    Case(f"{GLA}.naive", "naive_chunk_simple_gla", (*Q, "g"), reference_mamba2, CHUNK, {"scale": 0.5}),
    Case(QWEN, "torch_chunk_gated_delta_rule", BY_TOKEN, reference_gdn, CHUNK, grouped=True),
    Case(QWEN, "torch_recurrent_gated_delta_rule", BY_TOKEN, reference_gdn, STATE, grouped=True),
    Case(KIMI, "chunk_kimi_delta_attention", BY_CHANNEL, reference_kda, CHUNK),
    Case(KIMI, "recurrent_kimi_delta_attention", BY_CHANNEL, reference_kda, STATE),
    Case(KDA, "fused_recurrent_kda", BY_CHANNEL, reference_kda, STATE, grouped=True, interpreted=True),
    Case(GDN, "fused_recurrent_gated_delta_rule", (*Q, "g"), reference_gdn, STATE, interpreted=True),
    Case(DELTA, "fused_recurrent_delta_rule", (*Q, "beta"), reference_delta, STATE, interpreted=True),
]
"""Each of these is also called on integers."""

ROUNDED = [
    Case(QWEN, "torch_chunk_gated_delta_rule", BY_TOKEN, reference_gdn, *NORM, grouped=True),
    Case(QWEN, "torch_recurrent_gated_delta_rule", BY_TOKEN, reference_gdn, *NORM, grouped=True),
    Case(KIMI, "chunk_kimi_delta_attention", BY_CHANNEL, reference_kda, *NORM),
    Case(KIMI, "recurrent_kimi_delta_attention", BY_CHANNEL, reference_kda, *NORM),
    Case(
        KDA,
        "fused_recurrent_kda",
        BY_CHANNEL,
        reference_kda,
        RAW | STATE,
        OUR_RAW,
        grouped=True,
        interpreted=True,
    ),
    Case(
        KDA,
        "fused_recurrent_kda",
        BY_CHANNEL,
        reference_kda,
        RAW | STATE | {"lower_bound": -5.0},
        OUR_RAW | {"gate_lower_bound": -5.0},
        interpreted=True,
    ),
]
SIGNATURES = [
    (KDA, "chunk_kda"),
    (GDN, "chunk_gated_delta_rule"),
    (GDN, "chunk_gdn"),
    (GDN, "fused_recurrent_gdn"),
    (DELTA, "chunk_delta_rule"),
    (DPLR, "chunk_dplr_delta_rule"),
    (DPLR, "fused_recurrent_dplr_delta_rule"),
    (GDN2, "chunk_gdn2"),
    (GDN2, "fused_recurrent_gdn2"),
    (LINEAR, "chunk_linear_attn"),
    (LINEAR, "fused_chunk_linear_attn"),
    (LINEAR, "fused_recurrent_linear_attn"),
    (GLA, "chunk_simple_gla"),
    (GLA, "fused_recurrent_simple_gla"),
]


def drawn(case, integers):
    """Inputs in our layout and names, in float64: values that float32 holds."""
    rng = torch.Generator().manual_seed(5)
    tokens, heads, keys, values = case.tokens(), 2, 4, 3
    value_heads = 4 if case.grouped else heads
    gates = (1, tokens, value_heads)

    def normal(*shape):
        return torch.randn(shape, generator=rng).double()

    def integer(low, high, *shape):
        return torch.randint(low, high + 1, shape, generator=rng).double()

    def one_hot(*shape):
        return torch.nn.functional.one_hot(torch.randint(0, keys, shape, generator=rng), keys).double()

    if integers:
        direction = one_hot(*gates)
        return {
            "q": integer(-2, 2, 1, tokens, heads, keys),
            "k": one_hot(1, tokens, heads),
            "v": integer(-3, 3, *gates, values),
            "g": torch.zeros(gates).double(),
            "gk": torch.zeros(*gates, keys).double(),
            "beta": integer(0, 1, *gates),
            "a": -integer(0, 2, *gates, 1) * direction,
            "b": direction,
            "erase": integer(0, 1, *gates, keys),
            "write": integer(0, 2, *gates, values),
            "initial_state": integer(-3, 3, 1, value_heads, keys, values),
        }
    direction = torch.nn.functional.normalize(normal(*gates, keys), dim=-1)
    inputs = {
        "q": normal(1, tokens, heads, keys),
        "k": torch.nn.functional.normalize(normal(1, tokens, heads, keys), dim=-1),
        "v": normal(*gates, values),
        "g": torch.nn.functional.logsigmoid(normal(*gates)),
        "gk": torch.nn.functional.logsigmoid(normal(*gates, keys)),
        "beta": normal(*gates).sigmoid(),
        "a": -direction * normal(*gates, 1).sigmoid(),
        "b": direction,
        "erase": normal(*gates, keys).sigmoid(),
        "write": normal(*gates, values).sigmoid(),
        "initial_state": normal(1, value_heads, keys, values),
        "A_log": normal(value_heads),
        "dt_bias": normal(value_heads * keys),
    }
    if "use_gate_in_kernel" in case.options:
        inputs |= {"gk": normal(*gates, keys), "beta": normal(*gates)}
    return {name: x.float().double() for name, x in inputs.items()}


def arguments(case, inputs):
    """Positional and keyword arguments of the peer's function and of ours."""
    tensors = [inputs[name].float() for name in case.tensors]
    if case.heads_first:
        tensors = [x.transpose(1, 2).contiguous() for x in tensors]
    state = {"initial_state": inputs["initial_state"].float()} if case.state else {}
    raw = "use_gate_in_kernel" in case.options
    return tensors, state | case.options | {
        name: inputs[name].float() for name in (("A_log", "dt_bias") if raw else ())
    }


def expected(case, inputs):
    """Output and final state by our reference in float64."""
    names = {"gk": "g", "erase": "b", "write": "w"}
    tensors = {names.get(name, name): inputs[name] for name in case.tensors}
    if case.reference is reference_gdn:
        tensors.setdefault("beta", torch.ones(inputs["v"].shape[:3], dtype=torch.float64))
    if "use_gate_in_kernel" in case.options:
        tensors |= {name: inputs[name] for name in ("A_log", "dt_bias")}
    state = inputs["initial_state"] if case.state else None
    o, final = case.reference(**tensors, initial_state=state, output_final_state=True, **case.of_reference)
    return (o.transpose(1, 2) if case.heads_first else o), final


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    """Parameters and outcomes of all peers' functions, by case and whether on integers."""
    folder = tmp_path_factory.mktemp("peers")
    keys = [(case.id, True) for case in CASES] + [(case.id, False) for case in CASES + ROUNDED]
    by_id = {case.id: case for case in CASES + ROUNDED}
    calls = [
        (by_id[name].module, by_id[name].function, *arguments(by_id[name], drawn(by_id[name], integers)))
        for name, integers in keys
    ]
    calls += [(module, function, [], {}) for module, function in SIGNATURES]
    torch.save(calls, folder / "calls.pt")
    script = Path(__file__).with_name("compat_peers.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(script), str(folder / "calls.pt"), str(folder / "done.pt")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return dict(zip([*keys, *SIGNATURES], torch.load(folder / "done.pt"), strict=True))


def pair(outcome):
    return outcome if isinstance(outcome, tuple) else (outcome, None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_equal_on_integers(peers, case):
    inputs = drawn(case, integers=True)
    positional, keywords = arguments(case, inputs)
    ours, theirs = pair(case.ours(*positional, **keywords)), pair(peers[case.id, True][1])
    for mine, other, exact in zip(ours, theirs, expected(case, inputs), strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine.dtype == other.dtype
            assert torch.equal(mine, other)
            assert torch.equal(mine.double(), exact)


@pytest.mark.parametrize("case", CASES + ROUNDED, ids=lambda case: case.id)
def test_near_the_reference_on_random_numbers(peers, case):
    inputs = drawn(case, integers=False)
    positional, keywords = arguments(case, inputs)
    ours, theirs = pair(case.ours(*positional, **keywords)), pair(peers[case.id, False][1])
    for mine, other, exact in zip(ours, theirs, expected(case, inputs), strict=True):
        if mine is not None:
            assert mine.shape == other.shape == exact.shape
            for found in (mine, other):
                assert (found - exact).abs().max() <= LINE * exact.abs().max()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_same_signature(peers, case):
    assert parameters(case.ours) == peers[case.id, True][0]


@pytest.mark.parametrize(("module", "function"), SIGNATURES)
def test_same_signature_of_what_needs_a_gpu(peers, module, function):
    assert parameters(getattr(kernels.compat.fla, function)) == peers[module, function][0]


def test_every_function_is_compared():
    compared = {case.function for case in CASES} | {function for _, function in SIGNATURES}
    assert compared >= set(kernels.compat.fla.__all__)
