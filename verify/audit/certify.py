"""Certifies a kernel: runs it on hard inputs, holds it to derived tolerances, says what is wrong."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.audit import invariances, properties
from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention import Convention
from verify.audit.diagnosis.reasons import diagnose, merged, problems
from verify.audit.document import Gathered, document
from verify.audit.failure.reproduce import Reproducer
from verify.audit.failure.shrink import shrink, shrink_gradients
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.inputs.cells import cells, gradient_cells
from verify.audit.judge import Judgement, header, judge
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.properties import Property
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model.errors import AttnproofError, RequestError
from verify.model.verdict import Verdict

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all and what comes next."""

_MOST_TIMEOUTS = 3
_KEPT = (AttnproofError, ArithmeticError, MemoryError, ValueError)
"""Errors of one step that leave the results of the others standing."""


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
    run = Gathered()
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
    return document(identity, convention, bench, run, dtype=dtype, budget=budget, seed=seed)


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


def _run_cells(lab: Laboratory, cases: Sequence[Case], run: Gathered, steps: _Steps) -> None:
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


def _run_gradients(lab: Laboratory, cases: Sequence[Case], run: Gathered, steps: _Steps) -> None:
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
    return _unjudged(case, why, reference=None, output=None, state=None, worst_case=None)


def _unjudged(case: Case, why: str, **parts: Any) -> dict[str, Any]:
    problem = {"kind": "not-judged", "message": why}
    verdict = str(Verdict.UNDECIDED)
    return {**header(case), "verdict": verdict, **parts, "problem": problem, "seconds": 0.0}


def _check_properties(lab: Laboratory, run: Gathered, steps: _Steps) -> None:
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


def _beyond_worst_case(judged: Sequence[Judgement]) -> Finding:
    """The reason when nothing more is known than that the errors are no rounding errors."""
    ratios = [x for j in judged for x in (j.worst_case_ratios or {}).values() if x is not None]
    classes = ", ".join(dict.fromkeys(j.case.name for j in judged))
    return Finding(
        "more than any rounding",
        "the error exceeds the bound that is proved for every order of operations of this form",
        f"{max(ratios):.3g} times the bound of claim kernel.error-contract, in {classes}",
    )


def _explain(lab: Laboratory, run: Gathered, steps: _Steps) -> None:
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
    beyond = [j for j in judged if j.beyond_worst_case and not j.nonfinite]
    if beyond and all(finding.reason == "unexplained" for finding in run.findings):
        run.findings = [_beyond_worst_case(beyond)]
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
