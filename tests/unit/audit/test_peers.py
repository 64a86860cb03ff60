"""The presets call the real functions rightly: each agrees with the recurrence, up to a derived bound."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Laboratory
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model.errors import EnvironmentProblem

pytestmark = pytest.mark.peers
PEERS = Path(__file__).with_name("peers.py")
QWEN = "transformers.models.qwen3_next.modeling_qwen3_next"
TARGETS = [
    ("fla", "kda", "naive_recurrent_kda"),
    ("fla", "kda", "naive_chunk_kda"),
    ("fla", "gdn", "naive_recurrent_gated_delta_rule"),
    ("fla", "gdn", "naive_chunk_gated_delta_rule"),
    ("transformers", "gdn", "torch_chunk_gated_delta_rule"),
    ("transformers", "gdn", "torch_recurrent_gated_delta_rule"),
    ("transformers", "kda", "chunk_kimi_delta_attention"),
    ("transformers", "kda", "recurrent_kimi_delta_attention"),
]


@pytest.fixture(scope="module")
def peers() -> Iterator[Subject]:
    with Subject(Target.parse(f"{PEERS}:call"), Convention.load("fla", "kda")) as running:
        yield running


def make_case(convention: Convention, dtype: str) -> Case:
    """Keys of norm at most 1, beta in [0, 1): every transition is a contraction."""
    rng = np.random.default_rng(11)
    tokens = convention.length_multiple if convention.length_multiple > 1 else 5
    heads, keys, values = 2, 4, 3
    value_heads = 2 * heads if convention.grouped_heads else heads

    def eighths(*shape: int) -> np.ndarray:
        return rng.integers(-4, 5, shape) / 8.0

    gates = (1, tokens, value_heads)
    return Case(
        mechanism=convention.mechanism,
        name="eighths",
        seed=11,
        dtype=dtype,
        q=eighths(1, tokens, heads, keys),
        k=eighths(1, tokens, heads, keys),
        v=eighths(*gates, values),
        g=-rng.integers(0, 9, gates if convention.mechanism == "gdn" else (*gates, keys)) / 8.0,
        beta=rng.integers(0, 8, gates) / 8.0,
        initial_state=eighths(1, value_heads, keys, values),
        scale=keys**-0.5,
    )


def recurrence(case: Case) -> tuple[np.ndarray, np.ndarray, float]:
    """Output, final state, and the largest norm the state or a value reaches."""
    group = case.shape.HV // case.shape.H
    q, k = (np.repeat(x, group, axis=2) for x in (case.q, case.k))
    assert case.initial_state is not None
    state, output = case.initial_state.copy(), np.zeros_like(case.v)
    largest = max(np.linalg.norm(state, axis=(2, 3)).max(), np.linalg.norm(case.v, axis=-1).max())
    for t in range(case.shape.T):
        decay = np.exp(case.g[:, t])
        state = state * (decay[..., None, None] if decay.ndim == 2 else decay[..., None])
        error = case.v[:, t] - np.einsum("bhkv,bhk->bhv", state, k[:, t])
        state = state + np.einsum("bh,bhk,bhv->bhkv", case.beta[:, t], k[:, t], error)
        output[:, t] = case.scale * np.einsum("bhkv,bhk->bhv", state, q[:, t])
        largest = max(largest, np.linalg.norm(state, axis=(2, 3)).max())
    return output, state, float(largest)


def bound(case: Case, convention: Convention, largest: float) -> float:
    """Unit roundoff of float32 times the length of the longest chain of operations, times the size.

    Recurrent: one token costs K additions for the read and at most 8 further roundings (exp, decay,
    subtraction, beta, two products, addition, scale); a contraction passes earlier errors on
    unamplified, so errors add over T tokens, and the read-out adds K more. An error is relative to
    at most 3 terms of size M: the state, its read and the value. Chunked: rows of
    (I + L)^-1 are products of contractions applied to keys, hence entries are at most 1 and row sums
    at most C = min(T, 64); forward substitution commits a residual of C roundings in rows of
    1-norm at most C, and the inverse amplifies it by at most C once more: C^2 times the count.
    """
    s = case.shape
    operations = s.T * (s.K + 8) + s.K
    if convention.form == "chunked":
        operations *= min(s.T, 64) ** 2
    return 2.0**-24 * operations * 3 * largest


@pytest.mark.parametrize(("preset", "mechanism", "function"), TARGETS)
def test_a_preset_calls_its_function_rightly(
    peers: Subject, preset: str, mechanism: str, function: str
) -> None:
    convention = Convention.load(preset, mechanism, function)
    peers.convention = dataclasses.replace(convention, extra={**convention.extra, "function": function})
    case = make_case(convention, "float32")
    outcome = peers.run(case)
    assert outcome.problem is None
    output, state, largest = recurrence(case)
    limit = bound(case, convention, largest)
    assert np.abs(outcome.output - output).max() <= limit
    assert np.abs(outcome.final_state - state).max() <= limit
    for dtype in ("bfloat16", "float16", "float64"):
        assert peers.run(make_case(convention, dtype)).problem is None
    assert peers.run(case.slice(0, 0, None)).problem is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("mechanism", "function"),
    [
        ("simple_gla", "naive_recurrent_simple_gla"),
        ("simple_gla", "naive_chunk_simple_gla"),
        ("gdn2", "naive_recurrent_gdn2"),
        ("gdn2", "naive_chunk_gdn2"),
        ("dplr", "dplr_recurrence"),
        ("dplr", "dplr_chunkwise"),
        ("softmax", "naive_parallel_attn"),
    ],
)
def test_a_preset_of_a_further_mechanism_is_kept(
    peers: Subject, mechanism: str, function: str, dtype: str
) -> None:
    """Within the tolerance of its declared form, or refused in a dtype that the function fails on."""
    convention = Convention.load("fla", mechanism, function)
    extra = {**convention.extra, "function": function}
    peers.convention = dataclasses.replace(convention, extra=extra)
    lab = Laboratory(peers, Bench(peers.convention, 100), dtype)
    state = convention.takes_initial_state
    case = probe(convention, dtype, lab.length(9), seed=2, initial_state=state, grouped=True)
    if convention.dtypes and dtype not in convention.dtypes:
        assert dtype in str(peers.convention.refusal(case))
        peers.convention = dataclasses.replace(peers.convention, dtypes=())
        assert peers.run(case).problem is not None
    else:
        assert lab.judge(case).verdict == "sampled"


@pytest.mark.parametrize(
    ("preset", "mechanism", "function"),
    [t for t in TARGETS if not Convention.load(*t).grouped_heads],
)
def test_grouped_heads_are_denied_where_the_function_fails_on_them(
    peers: Subject, preset: str, mechanism: str, function: str
) -> None:
    convention = Convention.load(preset, mechanism, function)
    extra = {**convention.extra, "function": function}
    peers.convention = dataclasses.replace(convention, extra=extra, grouped_heads=True)
    problem = peers.run(make_case(peers.convention, "float32")).problem
    assert problem is not None
    assert problem.kind == "raised"


def test_a_length_multiple_is_declared_where_the_function_needs_one(peers: Subject) -> None:
    convention = Convention.load("fla", "kda", "naive_chunk_kda")
    extra = {**convention.extra, "function": "naive_chunk_kda"}
    peers.convention = dataclasses.replace(convention, extra=extra, length_multiple=1)
    problem = peers.run(make_case(peers.convention, "float32")).problem
    assert problem is not None
    assert "assert T % BT == 0" in problem.message


def test_a_name_that_leads_to_triton_is_refused_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    name = f"{QWEN}:torch_chunk_gated_delta_rule"
    with pytest.raises(EnvironmentProblem) as refused:
        Subject(Target.parse(name), Convention.load("transformers", "gdn", name))
    assert "it runs fla.ops.gated_delta_rule.chunk:chunk_gated_delta_rule, a Triton kernel" in str(
        refused.value
    )
    assert f"ask for {name}.__wrapped__ to certify the torch code" in str(refused.value)
