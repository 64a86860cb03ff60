"""Kernels that are right under another convention get the hint; right ones and other faults get none."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from calling import called

from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.conventions import explain_by_convention
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, judge
from verify.audit.laboratory import Laboratory

Kernel = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def made(
    *,
    decay: Callable[[torch.Tensor], torch.Tensor] = torch.exp,
    strength: Callable[[torch.Tensor], torch.Tensor] = lambda beta: beta,
    eps: float | None = None,
    turned: bool = False,
    tiled: bool = False,
    undecayed: bool = False,
    repeats: int = 1,
) -> Kernel:
    """A gated delta rule in float32 that takes its inputs in one way; the defaults are our convention."""

    def kernel(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        g: torch.Tensor,
        beta: torch.Tensor,
        *,
        scale: float,
        initial_state: torch.Tensor | None = None,
        output_final_state: bool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        heads = torch.arange(v.shape[2])
        heads = heads % q.shape[2] if tiled else heads // (v.shape[2] // q.shape[2])
        q, k = q[:, :, heads], k[:, :, heads]
        if eps is not None:
            q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps) for x in (q, k))
        q, decays, strengths = q * scale**repeats, decay(g), strength(beta)
        decays = decays if g.ndim == 4 else decays[..., None]
        state = torch.zeros(v.shape[0], v.shape[2], q.shape[-1], v.shape[-1])
        if initial_state is not None:
            state = initial_state.mT if turned else initial_state
        outputs = []
        for t in range(v.shape[1]):
            before, state = state, decays[:, t, ..., None] * state
            known = torch.einsum("bhkv,bhk->bhv", before if undecayed else state, k[:, t])
            write = strengths[:, t, :, None] * (v[:, t] - known)
            state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], write)
            outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
        return torch.stack(outputs, 1), state.mT if turned else state

    return kernel


def softplus_decay(g: torch.Tensor) -> torch.Tensor:
    return torch.exp(-torch.nn.functional.softplus(g))


def sigmoid_decay(g: torch.Tensor) -> torch.Tensor:
    return torch.exp(-5 * torch.sigmoid(g))


def laboratory(mechanism: str, cache: Path, **fields: Any) -> Laboratory:
    convention = Convention.load("ours", mechanism, f"recurrent_{mechanism}")
    convention = dataclasses.replace(convention, gradients="none", **fields)
    subject: Any = SimpleNamespace(convention=convention)
    return Laboratory(subject, Bench(convention, 100, cache), "float32")


def judged(kernel: Kernel, lab: Laboratory) -> list[Judgement]:
    """On two sequences of grouped heads, with keys of length 1/2 and 1/1024: a norm in the kernel shows."""
    found = []
    for i, (length, with_state) in enumerate(((0.5, True), (2.0**-10, False))):
        case: Case = probe(lab.convention, "float32", 7, seed=i, initial_state=with_state, grouped=True)
        case = case.replace(k=length * case.k, v=np.ascontiguousarray(case.v))
        outcome, c = called(kernel, lab.convention, case), lab.convention
        output, state = c.our_tokens(case, outcome.output), c.our_state(case, outcome.final_state)
        read = dataclasses.replace(outcome, output=output, final_state=state)
        found.append(judge(case, read, lab.bench.yardstick(case)))
    return found


@pytest.mark.parametrize("mechanism", ["kda", "gdn"])
@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"decay": torch.exp2}, 'g is log₂ of the decay (declare gate_space = "log2")'),
        ({"decay": lambda g: g}, 'g is the decay itself (declare gate_space = "linear")'),
        ({"decay": softplus_decay}, 'g goes through a softplus inside (declare gate_form = "softplus")'),
        ({"decay": sigmoid_decay}, 'g goes through a sigmoid inside (declare gate_form = "sigmoid")'),
        ({"strength": torch.sigmoid}, 'β goes through a sigmoid inside (declare beta_form = "sigmoid")'),
        ({"strength": lambda b: 2 * torch.sigmoid(b)}, '(declare beta_form = "2*sigmoid")'),
        ({"eps": 1e-6}, 'q and k are normalised inside (declare qk_norm = "unit")'),
        ({"eps": 0.0}, 'inside (declare qk_norm = "unit", qk_norm_eps = 0)'),
        ({"turned": True}, 'the state is [V, K] (declare state_layout = "VK")'),
        ({"tiled": True}, 'reads head hv % H of what heads share (declare head_order = "tiled")'),
    ],
)
def test_the_convention_that_a_kernel_keeps_is_named(
    mechanism: str, options: dict[str, Any], hint: str, cache: Path
) -> None:
    lab = laboratory(mechanism, cache)
    failing = [j for j in judged(made(**options), lab) if j.failed]
    assert failing
    found = explain_by_convention(lab, failing, [])
    assert found is not None
    assert found.detail == f"matches if {found.detail.removeprefix('matches if ')}"
    assert hint in found.detail


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"gate_space": "log2"}, "g is the natural log of the decay"),
        ({"gate_space": "linear"}, "g is the natural log of the decay"),
        ({"beta_form": "2*sigmoid"}, "β is used as it comes"),
        ({"qk_norm": "unit"}, "q and k are not normalised inside"),
        ({"state_layout": "VK"}, "the state is [K, V]"),
        ({"head_order": "tiled"}, "output head hv reads head hv // (HV // H)"),
    ],
)
def test_and_the_other_way_round(fields: dict[str, Any], hint: str, cache: Path) -> None:
    lab = laboratory("kda", cache, **fields)
    failing = [j for j in judged(made(), lab) if j.failed]
    assert failing
    found = explain_by_convention(lab, failing, [])
    assert found is not None
    assert hint in found.detail


@pytest.mark.parametrize(
    "options", [{"undecayed": True}, {"repeats": 2}, {"decay": lambda g: torch.exp(2 * g)}]
)
def test_other_faults_get_no_hint(options: dict[str, Any], cache: Path) -> None:
    lab = laboratory("kda", cache)
    failing = [j for j in judged(made(**options), lab) if j.failed]
    assert failing
    assert explain_by_convention(lab, failing, []) is None


def test_a_right_kernel_has_nothing_to_explain(cache: Path) -> None:
    lab = laboratory("kda", cache)
    assert not any(j.failed for j in judged(made(), lab))


def test_a_hint_must_hold_on_passing_cells_too(cache: Path) -> None:
    """A kernel that takes base 2 on one input and e on another keeps neither convention."""
    lab = laboratory("kda", cache)
    failing, passing = judged(made(decay=torch.exp2), lab), judged(made(), lab)
    assert explain_by_convention(lab, failing, passing) is None
