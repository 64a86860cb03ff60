"""Certifies a kernel: runs it on hard inputs, holds it to derived tolerances, says what is wrong."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verify.audit import invariances, properties
from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention import Convention
from verify.audit.diagnosis.reasons import describe, diagnose, merged, problems
from verify.audit.failure.reproduce import Reproducer
from verify.audit.failure.shrink import shrink, shrink_gradients
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.inputs.cells import cells, gradient_cells
from verify.audit.inputs.classes import REAL_CLASSES
from verify.audit.judge import Judgement, header, judge, number
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.properties import Property
from verify.audit.samples import samples
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.audit.tolerance.prediction import Algorithm
from verify.model import certificate, environment
from verify.model.errors import AttnproofError, RequestError
from verify.model.verdict import Verdict, weakest

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all and what comes next."""

_MOST_TIMEOUTS = 3
_KEPT = (AttnproofError, ArithmeticError, MemoryError, ValueError)
"""Errors of one step that leave the results of the others standing."""
_ABOUT = {kind.name: kind.why for kind in REAL_CLASSES} | {
    "integer": "every correct kernel is exact: layout, mask, order and index faults have nowhere to hide",
    "integer-reset": "exact, with decays to 0 inside a chunk",
}
_ASSUMPTIONS = [
    "rounding errors are independent and have mean 0, as in the stochastic-rounding model of this form",
    "the errors of a row are jointly Gaussian",
    "every operation rounds to the stated compute dtype or better (no TF32, no truncating accumulators)",
]


@dataclass
class _Run:
    """What a certification has gathered so far; kept whatever happens next."""

    judgements: list[Judgement] = field(default_factory=list)
    gradients: list[GradientJudgement] = field(default_factory=list)
    lost_gradients: list[dict[str, Any]] = field(default_factory=list)
    lost: list[dict[str, Any]] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    shrunk: Judgement | None = None
    reproducer: Reproducer | None = None


def certify(
    target: str,
    mechanism: str,
    convention: str | Convention,
    dtype: str = "float32",
    budget: str = "fast",
    seed: int = 0,
    *,
    python: str | None = None,
    time_limit_s: float = 60,
    memory_limit_gib: float = 8,
    classes: Iterable[str] | None = None,
    gradients: bool = False,
    cache: Path | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The certificate of one kernel, not yet sealed (see ``verify.model.certificate.write``).

    Args:
        target: ``package.module:function`` or ``path/to/file.py:function``.
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
        convention: name of a preset, path of a TOML file, or a loaded convention.
        dtype: dtype of q, k and v.
        budget: ``"fast"`` or ``"standard"``.
        seed: seed of all inputs.
        python: interpreter that runs the kernel; it needs torch.
        time_limit_s: limit per run.
        memory_limit_gib: limit on the worker's private memory.
        classes: names of the input classes to use; default all.
        gradients: whether to differentiate the kernel too and judge its gradients.
        cache: folder of earlier predictions.
        folder: where ``reproduce.py`` and ``input.safetensors`` go when something fails.
        progress: told about every step.

    Raises:
        RequestError: an unknown name, or a class the convention has no cells for.
        EnvironmentProblem: the kernel cannot be imported or cannot run on this machine.
    """
    if not isinstance(convention, Convention):
        convention = Convention.load(convention, mechanism, target)
    cases = _chosen(list(cells(mechanism, dtype, convention, budget, seed)), classes)
    if gradients and convention.gradients == "none":
        raise RequestError(
            f"convention {convention.name} says that {target} has no gradients; leave them out"
        )
    differentiated = gradient_cells(cases, budget) if gradients else []
    comparisons = len(cases) + len(differentiated) + properties.SPLIT_COMPARISONS + invariances.COMPARISONS
    bench = Bench(convention, comparisons, cache)
    parsed = Target.parse(target)
    run = _Run()
    with Subject(parsed, convention, python, time_limit_s, memory_limit_gib) as subject:
        lab = Laboratory(subject, bench, dtype)
        steps = _Steps(len(cases) + len(differentiated) + 3, progress)
        _run_cells(lab, cases, run, steps)
        _run_gradients(lab, differentiated, run, steps)
        if any(j.output is not None for j in run.judgements):
            _check_properties(lab, run, steps)
        _explain(lab, run, steps)
        identity = subject.identity
    if run.reproducer is not None and folder is not None:
        run.reproducer.write(folder, parsed, convention)
    return _certificate(identity, convention, bench, run, dtype=dtype, budget=budget, seed=seed)


@dataclass
class _Steps:
    total: int
    progress: Progress | None
    done: int = 0

    def next(self, what: str) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total, what)
        self.done += 1


def _chosen(cases: list[Case], classes: Iterable[str] | None) -> list[Case]:
    if classes is not None:
        wanted = set(classes)
        if missing := sorted(wanted - {case.name for case in cases}):
            known = sorted({case.name for case in cases})
            raise RequestError(f"no cells of class {', '.join(missing)}; classes in use: {', '.join(known)}")
        cases = [case for case in cases if case.name in wanted]
    if not cases:
        raise RequestError("the convention accepts none of the input shapes; widen it")
    return cases


def _run_cells(lab: Laboratory, cases: Sequence[Case], run: _Run, steps: _Steps) -> None:
    """Judge every case. One that cannot be judged is recorded and the others go on."""
    timeouts = 0
    for case in cases:
        steps.next(f"{case.name}, T = {case.shape.T}")
        if timeouts >= _MOST_TIMEOUTS:
            run.lost.append(_lost(case, f"not run: {timeouts} cells in a row hit the time limit"))
            continue
        try:
            yardstick = lab.bench.yardstick(case)
            outcome = lab.run(case)
        except _KEPT as error:
            run.lost.append(_lost(case, f"could not be judged: {type(error).__name__}: {error}"))
            continue
        timed_out = outcome.problem is not None and outcome.problem.kind == "timeout"
        timeouts = timeouts + 1 if timed_out else 0
        run.judgements.append(judge(case, outcome, yardstick))


def _run_gradients(lab: Laboratory, cases: Sequence[Case], run: _Run, steps: _Steps) -> None:
    """Judge the gradients of every case."""
    for case in cases:
        steps.next(f"gradients of {case.name}, T = {case.shape.T}")
        try:
            run.gradients.append(lab.judge_gradients(case))
        except _KEPT as error:
            why = f"could not be judged: {type(error).__name__}: {error}"
            run.lost_gradients.append(_unjudged(case, why, inputs={}))


def _lost(case: Case, why: str) -> dict[str, Any]:
    """The entry of a cell about which nothing can be said."""
    return _unjudged(case, why, reference=None, output=None, state=None)


def _unjudged(case: Case, why: str, **parts: Any) -> dict[str, Any]:
    problem = {"kind": "not-judged", "message": why}
    verdict = str(Verdict.UNDECIDED)
    return {**header(case), "verdict": verdict, **parts, "problem": problem, "seconds": 0.0}


def _check_properties(lab: Laboratory, run: _Run, steps: _Steps) -> None:
    steps.next("properties")
    exact = any(j.yardstick.kind == "exact" for j in run.judgements)
    floats = any(j.yardstick.kind != "exact" for j in run.judgements)
    checks: dict[str, Callable[[], Property]] = {
        "causality": lambda: properties.causality(lab),
        "split and resume": lambda: properties.split_and_resume(lab),
        "separate sequences and heads": lambda: invariances.separate_heads_and_sequences(lab),
        "strided inputs": lambda: invariances.strided_inputs(lab),
        "packed sequences": lambda: invariances.packed_sequences(lab),
        "repeated run": lambda: invariances.repeated_run(lab),
        "inputs unchanged": lambda: properties.unchanged_inputs(run.judgements),
        "finite": lambda: properties.finite(run.judgements),
    }
    if exact:
        checks["exact on integers"] = lambda: properties.integer_exact(run.judgements)
    if floats:
        checks["reference confirmed"] = lambda: properties.confirmed_reference(run.judgements, lab.bench)
    for name, check in checks.items():
        try:
            run.properties.append(check())
        except _KEPT as error:
            why = f"could not be checked: {type(error).__name__}: {error}"
            run.properties.append(Property(name, "", Verdict.UNDECIDED, why))


def _explain(lab: Laboratory, run: _Run, steps: _Steps) -> None:
    """Reasons and a small failing input, when anything failed."""
    broken = [p for p in run.properties if p.verdict is Verdict.REFUTED]
    judged = [*run.judgements, *(j for p in broken for j in p.failing)]
    failing = [j for j in judged if j.failed]
    wrong_gradients = [j for j in run.gradients if j.failed]
    if not failing and not broken and not wrong_gradients:
        return
    steps.next("reasons")
    run.findings = [p.finding for p in broken if p.finding is not None]
    try:
        if failing or broken:
            run.findings += diagnose(lab, judged, any(p.leaks for p in broken))
        run.findings = merged(run.findings + explain_gradients(lab, wrong_gradients))
    except _KEPT as error:
        run.findings += problems(run.judgements)
        run.findings.append(
            Finding("unexplained", f"the search for a reason failed: {error}", type(error).__name__)
        )
    if not run.findings:
        run.findings = [Finding(f"{p.name} violated", p.statement, p.detail) for p in broken]
    if failing:
        steps.next("shrinking")
        run.shrunk = shrink(lab, min(failing, key=lambda j: (j.problem is not None, j.case.v.size)))
        run.reproducer = Reproducer.of(run.shrunk)
    elif wrong_gradients:
        steps.next("shrinking")
        smallest = min(wrong_gradients, key=lambda j: (j.problem is not None, j.case.v.size))
        run.reproducer = Reproducer.of_gradients(shrink_gradients(lab, smallest))
    else:
        pair = next((p for p in broken if p.pair is not None), None)
        if pair is not None and pair.pair is not None:
            run.reproducer = Reproducer(pair.pair[0], pair.detail, other=pair.pair[1], cut=pair.cut)


def _certificate(
    identity: dict[str, Any],
    convention: Convention,
    bench: Bench,
    run: _Run,
    *,
    dtype: str,
    budget: str,
    seed: int,
) -> dict[str, Any]:
    entries = [j.cell() for j in run.judgements] + run.lost
    gradients = [j.entry() for j in run.gradients] + run.lost_gradients
    verdict = weakest(
        [Verdict(entry["verdict"]) for entry in (*entries, *gradients)]
        + [p.verdict for p in run.properties if p.verdict is not None]
    )
    return {
        "format": certificate.KERNEL_FORMAT,
        "version": certificate.VERSION,
        "target": _target(identity),
        "mechanism": convention.mechanism,
        "convention": _plain(convention),
        "dtype": dtype,
        "budget": budget,
        "seed": seed,
        "verdict": str(verdict),
        "summary": _summary(verdict, run, entries, gradients),
        "model": _model(convention, bench, run, dtype),
        "classes": _classes(entries),
        "cells": entries,
        "gradients": gradients,
        "properties": [p.entry() for p in run.properties],
        "findings": [dataclasses.asdict(finding) for finding in run.findings],
        "samples": samples([*([run.shrunk] if run.shrunk else []), *run.judgements], convention),
        "reproducer": None if run.reproducer is None else run.reproducer.entry(),
        "environment": environment.describe(seed),
    }


def _target(identity: dict[str, Any]) -> dict[str, Any]:
    """Which code was certified, in the certificate's words."""
    renamed = {"source_file": "file", "source_sha256": "sha256"}
    entry = {renamed.get(name, name): value for name, value in identity.items()}
    return {**entry, "resolved": f"{entry.pop('module')}:{entry.pop('qualname')}"}


def _plain(convention: Convention) -> dict[str, Any]:
    """The convention as JSON data."""
    fields = dataclasses.asdict(convention)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _model(convention: Convention, bench: Bench, run: _Run, dtype: str) -> dict[str, Any]:
    """What the tolerances rest on."""
    algorithm = Algorithm.of(convention, dtype)
    measures = [m for j in run.judgements for m in (j.output, j.state) if m is not None]
    measures += [m for j in run.gradients for m in j.measures.values()]
    compared = sum(m.difference.size for m in measures)
    form = algorithm.form if algorithm.chunk_size is None else f"{algorithm.form}({algorithm.chunk_size})"
    return {
        "forms": [form],
        "compute_dtype": algorithm.compute_dtype,
        "output_dtype": algorithm.output_dtype,
        "state_dtype": algorithm.state_dtype,
        "runs": bench.runs,
        "false_alarm": bench.false_alarm,
        "compared_numbers": compared,
        "assumptions": _ASSUMPTIONS,
    }


def _classes(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per input class, from its cells."""
    names = list(dict.fromkeys(entry["class"] for entry in entries))
    return [_class(name, [entry for entry in entries if entry["class"] == name]) for name in names]


def _class(name: str, entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    figures = [entry[part] for entry in entries for part in ("output", "state") if entry[part] is not None]

    def worst(key: str) -> float | str | None:
        return number(max(float(f[key]) for f in figures)) if figures else None

    return {
        "name": name,
        "about": _ABOUT[name],
        "cells": len(entries),
        "verdict": str(weakest(Verdict(entry["verdict"]) for entry in entries)),
        "worst_ratio": worst("worst_ratio"),
        "worst_over_deviation": worst("worst_over_deviation"),
        "max_abs_error": worst("max_abs_error"),
        "rms_ratio": worst("rms_ratio"),
    }


def _summary(
    verdict: Verdict, run: _Run, entries: Sequence[dict[str, Any]], gradients: Sequence[dict[str, Any]]
) -> str:
    """One sentence for the reader."""
    every = [*entries, *gradients]
    if verdict is Verdict.REFUTED:
        failed = sum(entry["verdict"] == str(Verdict.REFUTED) for entry in every)
        reasons = "; ".join(finding.reason for finding in run.findings) or "a property is violated"
        smallest = f", smallest failing input: {describe(run.shrunk)}" if run.shrunk is not None else ""
        return f"Refuted: {reasons} ({failed} of {len(every)} inputs fail{smallest})."
    if verdict is Verdict.UNDECIDED:
        said = [entry["problem"]["message"] for entry in (*run.lost, *run.lost_gradients)]
        said += [p.detail for p in run.properties if p.verdict is Verdict.UNDECIDED]
        return f"Undecided: {said[0] if said else 'nothing could be compared'}."
    ratios = [c["worst_ratio"] for c in _classes(entries) if c["worst_ratio"] is not None]
    ratios += [figures["worst_ratio"] for entry in gradients for figures in entry["inputs"].values()]
    also = f", on the gradients of {len(gradients)}" if gradients else ""
    return (
        f"Held on all {len(entries)} inputs tried{also} and in every property checked; the largest error is "
        f"{max(map(float, ratios), default=0.0):.2g} of the derived tolerance."
    )
