"""Presets of packages that cannot be installed here, on stand-ins.

One that keeps the convention passes; one that breaks it does not, and the reason names the one it keeps.
"""

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.conventions import explain_by_convention
from verify.audit.failure.reproduce import Reproducer
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement
from verify.audit.laboratory import Laboratory
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target

STAND_INS = Path(__file__).with_name("stand_ins.py")
PRESETS = {
    "fwd": ("flashkda", "kda", "fwd"),
    "chunk_kda": ("vllm", "kda", "chunk_kda"),
    "chunk_kda_with_fused_gate": ("vllm", "kda", "chunk_kda_with_fused_gate"),
    "fused_recurrent_kda": ("vllm", "kda", "fused_recurrent_kda"),
    "pooled": ("sglang", "kda", "chunk_kda"),
    "kimi_delta_attention": ("cudnn", "kda", "kimi_delta_attention"),
    "mamba_chunk_scan_combined": ("mamba", "mamba2", "mamba_chunk_scan_combined"),
    "ssd_minimal_discrete": ("mamba", "mamba2", "ssd_minimal_discrete"),
}


@pytest.fixture(scope="module")
def stand_ins() -> Iterator[Subject]:
    with Subject(Target.parse(f"{STAND_INS}:call"), Convention.load("vllm", "kda", "chunk_kda")) as running:
        yield running


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("predictions")


def laboratory(subject: Subject, function: str, cache: Path, violation: str = "") -> Laboratory:
    """The stand-in under its preset, in the dtype that its kernel takes."""
    convention = Convention.load(*PRESETS[function])
    name = f"{function}-{violation}" if violation else function
    subject.convention = dataclasses.replace(convention, extra={**convention.extra, "function": name})
    dtype = convention.dtypes[0] if convention.dtypes else "float32"
    return Laboratory(subject, Bench(subject.convention, 100, cache), dtype)


def case_of(lab: Laboratory) -> Case:
    state = lab.convention.takes_initial_state
    case = probe(lab.convention, lab.dtype, lab.length(5), seed=5, initial_state=state, grouped=True)
    # Not of length 1: a norm in the function, or none, shows. Their squares stay far from its eps.
    return case.replace(q=4 * case.q, k=case.k / 2)


def judged(lab: Laboratory) -> Judgement:
    return lab.judge(case_of(lab))


@pytest.mark.parametrize("function", PRESETS)
def test_a_stand_in_that_keeps_its_convention_passes(stand_ins: Subject, function: str, cache: Path) -> None:
    lab = laboratory(stand_ins, function, cache)
    judgement = judged(lab)
    assert judgement.problem is None
    assert judgement.verdict == "sampled", judgement.cell()
    assert (judgement.state is not None) == lab.convention.returns_state
    if function not in ("fwd", "ssd_minimal_discrete"):
        # Two sequences without an initial state.
        case = case_of(lab).replace(initial_state=None)
        assert lab.judge(case).verdict == "sampled"


@pytest.mark.parametrize("function", ["pooled", "kimi_delta_attention", "fused_recurrent_kda", "fwd"])
def test_packed_sequences_keep_their_states(stand_ins: Subject, function: str, cache: Path) -> None:
    """Bit for bit what each sequence gives alone: the stand-ins compute one after the other."""
    lab = laboratory(stand_ins, function, cache)
    cases = [
        probe(lab.convention, lab.dtype, tokens, seed=tokens, initial_state=True, grouped=True)
        for tokens in (2, 1, 4)
    ]
    together = stand_ins.run_packed(cases)
    alone = [stand_ins.run(case) for case in cases]
    assert together.problem is None
    assert np.array_equal(together.output, np.concatenate([one.output for one in alone], axis=1))
    assert np.array_equal(together.final_state, np.concatenate([one.final_state for one in alone]))


@pytest.mark.parametrize(
    ("function", "violation", "hint"),
    [
        ("fwd", "logits", 'β is used as it comes (declare beta_form = "value")'),
        ("chunk_kda", "log2", 'g is log₂ of the decay (declare gate_space = "log2")'),
        ("chunk_kda", "layout", 'the state is [K, V] (declare state_layout = "KV")'),
        ("chunk_kda_with_fused_gate", "raw", 'g is used as it comes (declare gate_form = "value")'),
        ("chunk_kda_with_fused_gate", "bias", "dt_bias is not added (leave it out of arguments)"),
        ("fused_recurrent_kda", "norm", 'q and k are not normalised inside (declare qk_norm = "none")'),
        ("kimi_delta_attention", "domain", 'g is the decay itself (declare gate_space = "linear")'),
        ("ssd_minimal_discrete", "log2", 'g is log₂ of the decay (declare gate_space = "log2")'),
    ],
)
def test_a_broken_convention_is_refuted_and_the_one_kept_is_named(
    stand_ins: Subject, function: str, violation: str, hint: str, cache: Path
) -> None:
    lab = laboratory(stand_ins, function, cache, violation)
    judgement = judged(lab)
    assert judgement.failed
    found = explain_by_convention(lab, [judgement], [])
    assert found is not None
    assert found.detail.startswith("matches if ")
    assert hint in found.detail


@pytest.mark.parametrize(
    ("function", "violation", "kind"),
    [
        ("fwd", "unwritten", None),
        ("pooled", "slots", None),
        ("chunk_kda", "keys", "inputs-mutated"),
        ("pooled", "neighbour", "inputs-mutated"),
    ],
)
def test_wrong_places_are_refuted(
    stand_ins: Subject, function: str, violation: str, kind: str | None, cache: Path
) -> None:
    judgement = judged(laboratory(stand_ins, function, cache, violation))
    assert judgement.failed
    assert (None if judgement.problem is None else judgement.problem.kind) == kind
    assert (judgement.nonfinite > 0) == (kind is None)


@pytest.mark.parametrize(
    ("function", "violation"),
    [
        ("fused_recurrent_kda", "unwritten"),
        ("mamba_chunk_scan_combined", "step"),
        ("mamba_chunk_scan_combined", "tiled"),
    ],
)
def test_other_faults_get_no_hint(stand_ins: Subject, function: str, violation: str, cache: Path) -> None:
    lab = laboratory(stand_ins, function, cache, violation)
    judgement = judged(lab)
    assert judgement.failed
    assert explain_by_convention(lab, [judgement], []) is None


@pytest.mark.parametrize(
    ("function", "violation"),
    [("fwd", "logits"), ("pooled", "stale")],
)
def test_the_script_of_a_failure_calls_as_the_convention_says(
    stand_ins: Subject, function: str, violation: str, cache: Path, tmp_path: Path
) -> None:
    """It shows about the error that was measured, and none beyond the tolerance without the violation."""
    lab = laboratory(stand_ins, function, cache, violation)
    failing = judged(lab)
    assert failing.failed
    shown, _ = script_of(failing, lab.convention, stand_ins.target, tmp_path)
    assert shown == pytest.approx(np.abs(failing.output.difference).max(), rel=1e-6)
    if function == "pooled":
        right = laboratory(stand_ins, function, cache).convention
        error, allowed = script_of(failing, right, stand_ins.target, tmp_path)
        assert error <= allowed < shown


def script_of(failing: Judgement, convention: Convention, target: Target, folder: Path) -> list[float]:
    """The largest error of the output that the script of a failure prints, and the one allowed."""
    Reproducer.of(failing).write(folder, target, convention)
    script = folder / "reproduce.py"
    assert len(script.read_text().splitlines()) <= 30
    done = subprocess.run([sys.executable, "-P", str(script)], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("output: largest error"))
    return [float(word) for word in line.split(" error ")[1].split(" allowed ")]
