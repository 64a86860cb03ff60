"""Wrong kernels of Mamba-2, DPLR and GDN-2: refuted with their reason, not where the fault is hidden."""

import functools
import importlib
import runpy
import sys
from collections.abc import Callable
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
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Laboratory
from verify.audit.samples import samples
from verify.audit.subject.target import Target
from verify.checkers.kernel_samples import sample_faults

TOKENS = 21
SWAPPED = "the directions of reading and removing swapped"
RUNS = 12


def no_gate(case: Case) -> Case:
    assert case.g is not None
    return case.replace(g=np.zeros_like(case.g))


def ones(*fields: str) -> Callable[[Case], Case]:
    return lambda case: case.replace(**{field: np.ones_like(getattr(case, field)) for field in fields})


def one_head(case: Case) -> Case:
    s = case.shape
    wanted = {"q": s.H, "k": s.H}
    arrays = {f: a[:, :, :1] for f, a in case.arrays().items() if f != "initial_state"}
    assert wanted.keys() <= arrays.keys()
    assert case.initial_state is not None
    return case.replace(**arrays, initial_state=case.initial_state[:, :1])


def equal_directions(case: Case) -> Case:
    return case.replace(a=case.b)


FAULTS = [
    ("mamba2", "decay after the write", "decay after the write", no_gate),
    ("mamba2", "one decay for all heads", "gate of the first head used for all heads", one_head),
    ("mamba2", "erases", None, lambda case: case.slice(0, 1, None)),
    ("mamba2", "narrow state", "state kept in bfloat16", None),
    ("mamba2", "tiled heads", "head grouping tiled instead of interleaved", one_head),
    ("dplr", "a reads the decayed state", "what is removed is read after the decay", no_gate),
    (
        "dplr",
        "a and b swapped",
        SWAPPED,
        equal_directions,
    ),
    ("dplr", "opposite sign", "removal with the opposite sign", lambda case: case.slice(0, 1, None)),
    ("dplr", "adds along the key", None, lambda case: case.slice(0, 1, None)),
    ("gdn2", "no write gate", "write gate missing", ones("w")),
    ("gdn2", "no erase gate", "erase gate missing", ones("b")),
    (
        "gdn2",
        "erase gate on the other side",
        SWAPPED,
        ones("b"),
    ),
    ("gdn2", "reads before the decay", "decay after erase", no_gate),
]


def laboratory(mechanism: str, cache: Path, **options: Any) -> Laboratory:
    if str(BROKEN) not in sys.path:
        sys.path.insert(0, str(BROKEN))
    function = functools.partial(getattr(importlib.import_module("directed"), mechanism), **options)
    convention = Convention.load("ours", mechanism, f"recurrent_{mechanism}")
    bench = Bench(convention, 64, cache, runs=RUNS)
    return Laboratory(InProcess(function, convention), bench, "float32")  # type: ignore[arg-type]


def inputs(lab: Laboratory) -> list[Case]:
    return [
        probe(lab.convention, "float32", TOKENS, seed=seed, initial_state=True, grouped=True, size=4)
        for seed in (1, 2)
    ]


@pytest.mark.parametrize("mechanism", ["mamba2", "dplr", "gdn2"])
def test_the_kernels_are_right_without_a_fault(mechanism: str, cache: Path) -> None:
    lab = laboratory(mechanism, cache)
    shape = Shape(B=2, T=TOKENS, H=1, HV=2, K=4, V=3)
    whole = draw_integer_case(mechanism, shape, dtype="float32", seed=1, with_state=True, resets=True)
    for case in (*inputs(lab), whole):
        assert lab.judge(case).verdict == "sampled"
    assert lab.judge_gradients(inputs(lab)[0]).verdict == "sampled"


@pytest.mark.parametrize(
    ("mechanism", "fault", "reason", "hides"), FAULTS, ids=[f"{m}-{fault}" for m, fault, *_ in FAULTS]
)
def test_every_fault_is_refuted_with_its_reason(
    mechanism: str, fault: str, reason: str | None, hides: Callable[[Case], Case] | None, cache: Path
) -> None:
    lab = laboratory(mechanism, cache, fault=fault)
    judged = [lab.judge(case) for case in inputs(lab)]
    assert all(j.failed for j in judged)
    found = [finding.reason for finding in diagnose(lab, judged, leaks=False)]
    assert found == [reason or "unexplained"]
    if hides is not None:
        assert lab.judge(hides(inputs(lab)[0])).verdict == "sampled"


@pytest.mark.parametrize("fault", ["narrow state", "opposite sign", "erase gate on the other side"])
def test_whole_numbers_show_it_too(fault: str, cache: Path) -> None:
    mechanism = next(m for m, name, *_ in FAULTS if name == fault)
    lab = laboratory(mechanism, cache, fault=fault)
    shape = Shape(B=1, T=TOKENS, H=1, HV=2, K=4, V=3)
    case = draw_integer_case(mechanism, shape, dtype="float32", seed=1, with_state=True, resets=False)
    # Values of that size make states that need more than the 8 bits of bfloat16.
    case = case.replace(v=33 * case.v) if fault == "narrow state" else case
    judged = lab.judge(case)
    assert judged.yardstick.kind == "exact"
    assert judged.failed


@pytest.mark.parametrize(
    ("mechanism", "fault", "field"),
    [("dplr", "a without a gradient", "a"), ("gdn2", "write gate without a gradient", "w")],
)
def test_wrong_gradients_are_refuted(mechanism: str, fault: str, field: str, cache: Path) -> None:
    lab = laboratory(mechanism, cache, fault=fault)
    case = inputs(lab)[0]
    assert lab.judge(case).verdict == "sampled"
    judged = lab.judge_gradients(case)
    assert judged.failing == (field,)
    (finding,) = explain_gradients(lab, [judged])
    assert finding.reason == f"gradient of {field} off by a factor"


def halved(rows: Any) -> Any:
    return [halved(x) for x in rows] if isinstance(rows, list) else (float.fromhex(rows) / 2).hex()


@pytest.mark.parametrize(
    ("mechanism", "fault"),
    [(m, f) for m, f, reason, _ in FAULTS if reason in ("decay after the write", SWAPPED)],
)
def test_samples_and_scripts_show_the_fault(
    mechanism: str, fault: str, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = laboratory(mechanism, cache, fault=fault)
    case = probe(lab.convention, "float32", 5, seed=1, initial_state=True, grouped=True, size=4)
    judged = lab.judge(case)
    (sample,) = samples([judged], lab.convention)
    assert sample["verdict"] == "refuted"
    assert sample_faults(0, sample) == []
    for name in sample["inputs"].keys() & {"b", "w", "g"}:
        other = halved(sample["inputs"][name])
        changed = {**sample, "inputs": {**sample["inputs"], name: other}}
        assert any("is not within its bound" in found for found in sample_faults(0, changed))
    target = Target.parse(f"{BROKEN / 'directed'}.py:wrong_{mechanism}")
    Reproducer.of(judged).write(tmp_path, target, lab.convention)
    assert len((tmp_path / "reproduce.py").read_text("utf-8").splitlines()) <= 30
    runpy.run_path(str(tmp_path / "reproduce.py"))
    assert judged.output is not None
    assert judged.state is not None
    printed = [
        float(line.split("largest error ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()
    ]
    largest = [np.abs(m.difference).max() for m in (judged.output, judged.state)]
    assert printed == pytest.approx(largest, rel=1e-6)
