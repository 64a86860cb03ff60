"""Wrong kernels: each is refuted with its reason, and not flagged on an input that hides its fault."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import BROKEN, as_broken

from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.inputs.probes import probe
from verify.audit.judge import judge
from verify.checkers.kernel_certificate import recheck

Hiding = Callable[[Convention, str], Case]


@dataclass(frozen=True)
class Broken:
    """A wrong kernel, the classes that show it, the reason to find, and an input on which it is right."""

    file: str
    function: str
    classes: tuple[str, ...]
    reason: str
    hides: Hiding
    dtype: str = "float32"
    also: tuple[str, ...] = ()

    @property
    def mechanism(self) -> str:
        return self.function.split("_")[1]

    @property
    def target(self) -> str:
        return f"{BROKEN / self.file}.py:{self.function}"


def of(tokens: int, **options: Any) -> Hiding:
    return lambda convention, dtype: probe(convention, dtype, tokens, **options)


def unpacked(kernel: "Broken") -> Convention:
    """Our convention, without packed sequences, which these kernels do not take."""
    return as_broken(Convention.load("ours", kernel.mechanism, kernel.target))


def unit_scale(convention: Convention, dtype: str) -> Case:
    return probe(convention, dtype, 20).replace(scale=1.0)


def orthogonal_keys(convention: Convention, dtype: str) -> Case:
    return probe(convention, dtype, 8).replace(k=np.eye(8)[None, :, None, :])


def unread_queries(convention: Convention, dtype: str) -> Case:
    """Queries that no key of the same token meets."""
    case = probe(convention, dtype, 4)
    keys, queries = np.eye(8)[:4], np.eye(8)[4:]
    return case.replace(k=keys[None, :, None, :], q=queries[None, :, None, :])


def small_integers(convention: Convention, dtype: str) -> Case:
    """Every state is a matrix of small integers, which bfloat16 holds."""
    shape = Shape(B=1, T=9, H=1, HV=2, K=4, V=4)
    return draw_integer_case(convention.mechanism, shape, dtype=dtype, seed=3, with_state=True, resets=False)


ALONE = ("separate sequences and heads: wrong numbers",)
"""A head that reads the wrong group reads the right one when it is alone."""

KERNELS = (
    Broken(
        "decay_after_erase", "recurrent_gdn", ("random", "gate-zero"), "decay after erase", of(20, gate=0.0)
    ),
    Broken(
        "decay_after_erase", "recurrent_kda", ("random", "gate-mixed"), "decay after erase", of(20, gate=0.0)
    ),
    Broken("missing_scale", "recurrent_gdn", ("random",), "missing scale", unit_scale),
    Broken("missing_scale", "chunked_kda", ("random",), "missing scale", unit_scale),
    Broken(
        "doubling_inverse",
        "chunked_gdn",
        ("constant-key-0.97",),
        "unstable triangular inverse",
        orthogonal_keys,
    ),
    Broken(
        "doubling_inverse",
        "chunked_kda",
        ("constant-key-0.97", "random"),
        "unstable triangular inverse",
        orthogonal_keys,
        "bfloat16",
    ),
    Broken("tail_at_the_pad", "chunked_gdn", ("random",), "tail chunk read at the pad", of(64)),
    Broken("tail_at_the_pad", "chunked_kda", ("random",), "tail chunk read at the pad", of(128)),
    Broken(
        "split_exponential",
        "chunked_gdn",
        ("gate-strong",),
        "exponential of −cumsum formed alone",
        of(70, gate=-0.01),
    ),
    Broken(
        "split_exponential",
        "chunked_kda",
        ("gate-strong",),
        "exponential of −cumsum formed alone",
        of(70, gate=-0.01),
    ),
    Broken(
        "padded_gate",
        "chunked_kda",
        ("gate-strong",),
        "pad rows read the running gate as 0",
        of(64, gate=-5.0),
    ),
    Broken(
        "future_anchor",
        "chunked_kda",
        ("random",),
        "rounding depends on later tokens",
        of(40, gate=(-0.1, -0.01)),
    ),
    Broken("mask_leak", "chunked_gdn", ("random",), "a token reads later tokens", of(1)),
    Broken(
        "tiled_heads",
        "recurrent_gdn",
        ("random",),
        "head grouping tiled instead of interleaved",
        of(20),
        also=ALONE,
    ),
    Broken("ignored_state", "recurrent_gdn", ("random",), "initial state ignored", of(20)),
    Broken("ignored_state", "chunked_kda", ("random",), "initial state ignored", of(70)),
    Broken("bfloat16_state", "recurrent_kda", ("random",), "state kept in bfloat16", small_integers),
    Broken("no_erase", "recurrent_delta", ("random",), "no erase", orthogonal_keys),
    Broken("late_write", "recurrent_linear", ("random",), "read before the write", unread_queries),
    Broken(
        "wide_mask",
        "tiled_softmax",
        ("random",),
        "mask one token too wide",
        of(1),
        also=("a token reads later tokens",),
    ),
    Broken(
        "no_maximum",
        "tiled_softmax",
        ("random", "logits-offset"),
        "exponential of a logit formed alone",
        of(20),
    ),
    Broken("forgotten_rescale", "tiled_softmax", ("logits-rising",), "more than any rounding", of(15)),
    Broken(
        "tiled_query_heads",
        "tiled_softmax",
        ("random",),
        "head grouping tiled instead of interleaved",
        of(20),
        also=ALONE,
    ),
)
IDS = [f"{kernel.file}-{kernel.function}" for kernel in KERNELS]


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
def test_a_wrong_kernel_is_refuted_with_its_reason(
    kernel: Broken, certified: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    result = certified(
        kernel.target, kernel.mechanism, unpacked(kernel), dtype=kernel.dtype, classes=kernel.classes
    )
    assert result["verdict"] == "refuted"
    assert [finding["reason"] for finding in result["findings"]] == [*kernel.also, kernel.reason]
    assert all(finding["evidence"] for finding in result["findings"])
    assert kernel.reason in result["summary"]
    assert recheck(result) == []
    script = (tmp_path / result["reproducer"]["script"]).read_text()
    assert len(script.splitlines()) <= 30
    assert (tmp_path / result["reproducer"]["data"]).exists()


@pytest.mark.parametrize("kernel", {kernel.file: kernel for kernel in KERNELS}.values(), ids=lambda k: k.file)
def test_a_wrong_kernel_passes_where_its_fault_hides(
    kernel: Broken, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BROKEN)
    function = getattr(importlib.import_module(kernel.file), kernel.function)
    convention = unpacked(kernel)
    case = kernel.hides(convention, kernel.dtype)
    judgement = judge(case, called(function, case), Bench(convention, 1, cache).yardstick(case))
    assert judgement.output is not None
    assert (judgement.state is not None) == case.kind.stateful
    assert judgement.verdict == "sampled", judgement.cell()


def called(function: Callable[..., Any], case: Case) -> Outcome:
    """Called in this process: a kernel of ours needs no guard."""
    gates = getattr(torch, case.gate_dtype)
    dtypes = dict.fromkeys(("q", "k", "v"), getattr(torch, case.dtype))
    tensors = {f: torch.from_numpy(a).to(dtypes.get(f, gates)) for f, a in case.arrays().items()}
    options = {"output_final_state": True} if case.kind.stateful else {}
    output, state = function(**tensors, scale=case.scale, **options)
    final = None if state is None else state.double().numpy()
    return Outcome(output.double().numpy(), final, case.dtype, case.gate_dtype, None, 0.0)


@pytest.mark.parametrize(
    ("file", "function", "shown"),
    [
        ("ignored_state", "recurrent_gdn", "output: largest error"),
        ("future_anchor", "chunked_kda", "outputs before it differ by"),
    ],
)
def test_the_script_shows_the_failure_without_this_tool(
    file: str, function: str, shown: str, certified: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    kernel = next(k for k in KERNELS if (k.file, k.function) == (file, function))
    result = certified(
        kernel.target, kernel.mechanism, unpacked(kernel), dtype=kernel.dtype, classes=kernel.classes
    )
    command = [sys.executable, "-P", result["reproducer"]["script"]]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    line = next(line for line in run.stdout.splitlines() if line.startswith(shown))
    error, *allowed = (float(word) for word in line.removeprefix(shown).replace("allowed", "").split())
    assert error > max(allowed, default=0.0)
