"""Wrong attention with a window, a sink, a linear normaliser: refuted, not where the fault is hidden."""

import functools
import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calling import InProcess
from conftest import BROKEN

from verify.audit.bench import Bench
from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.reasons import diagnose
from verify.audit.failure.reproduce import Reproducer
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Laboratory
from verify.audit.samples import samples
from verify.audit.subject.target import Target
from verify.checkers.kernel_samples import sample_faults

RUNS = 12
FAULTS = [
    ("softmax_window", "wider", "window one token too wide", 16),
    ("softmax_window", "narrower", "window one token too narrow", 15),
    ("softmax_window", "no window", "no window", 16),
    ("softmax_sink", "no sink", "sink ignored", 0),
    ("softmax_sink", "normalised anew", "sink ignored", 0),
    ("linear_normalised", "no normaliser", "no normaliser", 0),
    ("linear_normalised", "narrow mask", "mask one token too narrow", 0),
    ("linear_normalised", "epsilon", "epsilon in the normaliser", 0),
]
"""Mechanism, fault, reason, and the longest sequence on which it makes no difference."""


def laboratory(mechanism: str, cache: Path, **options: Any) -> Laboratory:
    if str(BROKEN) not in sys.path:
        sys.path.insert(0, str(BROKEN))
    function = functools.partial(getattr(importlib.import_module("limited"), mechanism), **options)
    form = "recurrent_linear" if mechanism == "linear_normalised" else "tiled_softmax"
    convention = Convention.load("ours", mechanism, form)
    bench = Bench(convention, 64, cache, runs=RUNS)
    return Laboratory(InProcess(function, convention), bench, "float32")  # type: ignore[arg-type]


def drawn(lab: Laboratory, tokens: int) -> Case:
    return probe(lab.convention, "float32", tokens, seed=1, grouped=True, size=4)


def whole(mechanism: str) -> Case:
    shape = Shape(B=1, T=40, H=1, HV=2, K=4, V=3)
    return draw_integer_case(mechanism, shape, dtype="float32", seed=1, with_state=False, resets=False)


@pytest.mark.parametrize("mechanism", ["softmax_window", "softmax_sink", "linear_normalised"])
def test_the_kernels_are_right_without_a_fault(mechanism: str, cache: Path) -> None:
    lab = laboratory(mechanism, cache)
    for case in (drawn(lab, 40), whole(mechanism)):
        assert lab.judge(case).verdict == "sampled"
    if mechanism != "softmax_sink":
        assert lab.judge_gradients(drawn(lab, 40)).verdict == "sampled"


@pytest.mark.parametrize(
    ("mechanism", "fault", "reason", "hidden"), FAULTS, ids=[f"{m}-{fault}" for m, fault, *_ in FAULTS]
)
def test_every_fault_is_refuted_with_its_reason(
    mechanism: str, fault: str, reason: str, hidden: int, cache: Path
) -> None:
    lab = laboratory(mechanism, cache, fault=fault)
    with np.errstate(invalid="ignore"):
        judged = [lab.judge(drawn(lab, 40))]
        assert judged[0].failed
        found = [finding.reason for finding in diagnose(lab, judged, leaks=False)]
    if fault != "narrow mask":  # The first token sees nothing: 0 over 0.
        assert found == [reason]
    if mechanism == "softmax_window" and fault != "narrower":
        exact = lab.judge(whole(mechanism))
        assert exact.yardstick.kind == "exact"
        assert exact.failed
    if hidden:
        assert lab.judge(drawn(lab, hidden)).verdict == "sampled"


@pytest.mark.parametrize(
    ("mechanism", "fault"),
    [("softmax_window", "wider"), ("softmax_sink", "no sink"), ("linear_normalised", "no normaliser")],
)
def test_samples_and_scripts_show_the_fault(
    mechanism: str, fault: str, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = laboratory(mechanism, cache, fault=fault)
    judged = lab.judge(drawn(lab, 20))
    for sample in samples([judged], lab.convention):
        assert sample_faults(0, sample) == []
        other = {**sample, "reference": (float.fromhex(sample["reference"]) * (1 + 1e-9)).hex()}
        assert any("is not within its bound" in found for found in sample_faults(0, other))
    target = Target.parse(f"{BROKEN / 'limited'}.py:wrong_{mechanism}")
    Reproducer.of(judged).write(tmp_path, target, lab.convention)
    assert len((tmp_path / "reproduce.py").read_text("utf-8").splitlines()) <= 30
    runpy.run_path(str(tmp_path / "reproduce.py"))
    assert judged.output is not None
    printed = float(capsys.readouterr().out.split("largest error ")[1].split()[0])
    assert printed == pytest.approx(np.abs(judged.output.difference).max(), rel=1e-6)
