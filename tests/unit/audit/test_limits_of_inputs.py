"""Gates of -inf, a scale of 0, pads of NaN between packed sequences: what stands them, and what it shows."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.reasons import diagnose
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.inputs.cells import cell_of
from verify.audit.judge import judge
from verify.audit.laboratory import Laboratory
from verify.audit.mechanism import MECHANISMS, kernel
from verify.audit.properties.invariances import packed_sequences
from verify.audit.search.climb import pressure
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target

TARGET = Path(__file__).with_name("differentiable.py")
OURS = dataclasses.replace(Convention.load("ours", "gdn", "recurrent_gdn"), gate_infinite=True)


@pytest.fixture(scope="module")
def target() -> Iterator[Subject]:
    with Subject(Target.parse(f"{TARGET}:call"), OURS) as started:
        yield started


def lab(target: Subject, function: str, **extra: str) -> Laboratory:
    target.convention = dataclasses.replace(OURS, extra={**OURS.extra, "function": function, **extra})
    return Laboratory(target, Bench(target.convention, 20), "float32")


def cell(name: str) -> Case:
    return cell_of(name, "gdn", Shape(B=1, T=40, H=1, HV=2, K=4, V=3), "float32", True, 0)


def test_a_gate_of_minus_infinity_is_stood_or_named(target: Subject) -> None:
    case = cell("gate-infinite")
    assert np.isneginf(case.log_decay).any()
    right, wrong = lab(target, "packed"), lab(target, "unfloored")
    target.convention = right.bench.convention
    good, gradients = right.judge(case), right.judge_gradients(case)
    assert not good.failed
    assert not gradients.failed
    assert (gradients.yardstick.values["g"][np.isneginf(case.log_decay[..., 0])] == 0).all()
    assert 0 < pressure(right, case) < 10
    target.convention = wrong.bench.convention
    bad, gradients = wrong.judge(case), wrong.judge_gradients(case)
    assert bad.nonfinite
    assert gradients.nonfinite
    findings = diagnose(wrong, [bad], False) + explain_gradients(wrong, [gradients])
    assert {finding.reason for finding in findings} == {"not finite for a gate of −inf"}
    assert not wrong.judge(case.with_finite_gates()).nonfinite


# Simple GLA has the kernels of Mamba-2.
GATED = [(m, form) for m, kind in MECHANISMS.items() if kind.gate and not kind.room for form in kind.forms]


@pytest.mark.parametrize(("mechanism", "form"), GATED)
def test_our_kernels_stand_a_gate_of_minus_infinity(mechanism: str, form: str) -> None:
    ours = Convention.load("ours", mechanism, f"{form}_{mechanism}")
    convention = dataclasses.replace(ours, gate_infinite=True)
    case = cell_of("gate-infinite", mechanism, Shape(1, 40, 1, 2, 4, 3), "float32", True, 0)
    inputs = {f: torch.from_numpy(x).float() for f, x in case.arrays().items()}
    output, state = kernel(mechanism, form)(**inputs, scale=case.scale, output_final_state=True)
    outcome = Outcome(output.double().numpy(), state.double().numpy(), "float32", "float32", None, 0.0)
    judgement = judge(case, outcome, Bench(convention, 20).yardstick(case))
    assert not judgement.failed
    assert judgement.output is not None
    assert judgement.output.worst_ratio > 2.0**-10


def test_the_tolerance_of_infinite_gates_is_that_of_resets(target: Subject) -> None:
    bench, case = lab(target, "packed").bench, cell("gate-infinite")
    infinite, finite = bench.yardstick(case), bench.yardstick(case.with_finite_gates())
    assert np.isfinite(infinite.output_tolerance).all()
    assert infinite.output_tolerance == pytest.approx(finite.output_tolerance)
    assert (infinite.output == finite.output).all()


def test_a_scale_of_zero_taken_for_none_is_named(target: Subject) -> None:
    assert not lab(target, "packed").judge(cell("scale-zero")).failed
    wrong = lab(target, "default_scale")
    passing, failing = wrong.judge(cell("random")), wrong.judge(cell("scale-zero"))
    assert not passing.failed
    assert failing.failed
    assert [finding.reason for finding in diagnose(wrong, [passing, failing], False)] == [
        "a scale of 0 taken for none"
    ]


def test_pads_between_packed_sequences_take_no_part(target: Subject) -> None:
    right = packed_sequences(lab(target, "packed"))
    assert right.verdict == "sampled"
    assert "with NaN between them: 4 runs" in right.detail
    refusing = packed_sequences(lab(target, "packed", fault="refuses"))
    assert refusing.verdict == "sampled"
    assert "NaN is refused: the target raised ValueError: v holds NaN" in refusing.detail
    leaking = packed_sequences(lab(target, "packed", fault="leaks"))
    assert leaking.verdict == "refuted"
    assert leaking.finding is not None
    assert leaking.finding.reason == "packed sequences: pads between them take part"
