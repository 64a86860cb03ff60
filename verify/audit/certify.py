"""Certifies a kernel: runs it on hard inputs, holds it to derived tolerances, says what is wrong."""

import dataclasses
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.document import Gathered, document
from verify.audit.explain import explain
from verify.audit.inputs.cells import cells, gradient_cells
from verify.audit.judge import judge
from verify.audit.laboratory import Laboratory
from verify.audit.plain import rules
from verify.audit.properties import arrangements, equivalences, invariances, large_tensors
from verify.audit.properties import basic as properties
from verify.audit.properties.basic import Property
from verify.audit.record.depends import depends
from verify.audit.record.journal import Journal, Say
from verify.audit.request import Request
from verify.audit.runs import run_all
from verify.audit.search.climb import EFFORTS, Climb, climbs
from verify.audit.steps import KEPT, Progress, Steps
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model import digest
from verify.model.errors import RequestError
from verify.model.verdict import Verdict

_OF_PROPERTIES = properties.SPLIT_COMPARISONS + sum(
    module.COMPARISONS for module in (invariances, arrangements, equivalences)
)
"""Comparisons with a tolerance that properties make."""


@dataclass(frozen=True)
class Certification:
    """What came of a request.

    Args:
        data: the certificate, not yet sealed (see ``verify.model.certificate.write``).
        sources: fingerprints of the files the kernel was read from; None when one changed meanwhile, or where
            they cannot be told.
        journal: the steps that were judged.
    """

    data: dict[str, Any]
    sources: dict[str, str] | None
    journal: Journal


def certify(
    target: str,
    mechanism: str,
    convention: str | Convention = "ours",
    dtype: str = "float32",
    budget: str = "fast",
    seed: int = 0,
    *,
    python: str | None = None,
    time_limit_s: float = 60,
    memory_limit_gib: float = 8,
    classes: Iterable[str] | None = None,
    gradients: bool = False,
    reference: str = "float64",
    cache: Path | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The certificate of one kernel, made anew and not yet sealed (see ``verify.model.certificate.write``).

    Arguments as of `verify.audit.request.Request` and `certification`.
    """
    request = Request(
        target,
        mechanism,
        convention,
        dtype,
        budget,
        seed,
        python,
        time_limit_s,
        memory_limit_gib,
        None if classes is None else tuple(classes),
        gradients,
        reference,
    )
    return certification(request, cache=cache, folder=folder, progress=progress).data


def certification(
    request: Request,
    *,
    cache: Path | None = None,
    folder: Path | None = None,
    journal: Path | None = None,
    resume: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    say: Say = lambda sentence: None,
) -> Certification:
    """Certify one kernel.

    Args:
        request: the kernel, and how it is called.
        cache: folder of earlier predictions.
        folder: where ``reproduce.py`` and ``input.safetensors`` go when something fails.
        journal: file that gets every step as soon as it is judged.
        resume: whether to take over the steps in that file.
        jobs: processes that work out what to expect; they import the main module, as `multiprocessing` does.
        progress: told about every step.
        say: told what the user should know.

    Raises:
        RequestError: an unknown name, or a class the convention has no cells for.
        EnvironmentProblem: the kernel cannot be imported or cannot run on this machine.
    """
    convention, dtype = request.loaded(), request.dtype
    if convention.dtypes and dtype not in convention.dtypes:
        takes = ", ".join(convention.dtypes)
        raise RequestError(f"convention {convention.name} takes {takes}, not {dtype}; ask for that --dtype")
    everything = list(cells(request.mechanism, dtype, convention, request.budget, request.seed))
    cases = _chosen(everything, request.classes)
    if request.gradients and convention.gradients == "none":
        raise RequestError(
            f"convention {convention.name} says that {request.target} has no gradients; leave them out"
        )
    wanted = request.gradients or (request.budget == "thorough" and convention.gradients != "none")
    differentiated = gradient_cells(cases, request.budget) if wanted else []
    searches = request.budget in EFFORTS
    comparisons = len(cases) + len(differentiated) + _OF_PROPERTIES + searches
    bench = Bench(convention, comparisons, cache, reference=request.reference)
    target, run = Target.parse(request.target), Gathered()
    limits = request.time_limit_s, request.memory_limit_gib
    with Subject(target, convention, request.python, *limits) as subject:
        judging = Laboratory(subject, bench, dtype)
        # What is asked beyond the cells, of many more cases, is judged by the fast reference.
        lab = Laboratory(subject, dataclasses.replace(bench, reference="float64"), dtype)
        # Sources that cannot be told are the same as no others, not even as those of another run.
        sources = subject.sources() or str(uuid.uuid4())
        kernel = {"the kernel": digest.of_json([subject.identity, sources])}
        steps = Steps(len(cases) + len(differentiated) + searches + 3, progress)
        with Journal(journal, kernel | depends(request), resume, say) as kept:
            run_all(judging, cases, differentiated, run, steps, kept, jobs)
            if any(j.output is not None for j in run.judgements):
                _check_properties(lab, bench, run, steps, kept)
                _search(lab, bench, run, steps, kept, request)
            explain(lab, run, steps, kept)
        identity, read = subject.identity, subject.sources()
    if run.reproducer is not None and folder is not None:
        run.reproducer.write(folder, target, convention)
    return Certification(document(identity, bench, run, request), read, kept)


def _chosen(cases: list[Case], classes: Iterable[str] | None) -> list[Case]:
    if classes is not None:
        wanted = set(classes)
        if missing := sorted(wanted - {case.name for case in cases}):
            known = sorted({case.name for case in cases})
            raise RequestError(f"no cells of class {', '.join(missing)}; classes in use: {', '.join(known)}")
        cases = [case for case in cases if case.name in wanted]
    if not cases:
        raise RequestError("the convention accepts none of the inputs; widen it, or ask for another --dtype")
    return cases


def _search(
    lab: Laboratory, bench: Bench, run: Gathered, steps: Steps, journal: Journal, request: Request
) -> None:
    """Climb from the worst cells, where the budget has time for it; where that got is one more cell."""
    effort = EFFORTS.get(request.budget)
    if effort is None:
        return
    steps.next("search for worse inputs")
    judged = list(run.judgements)
    try:
        run.climbs = journal.keep(
            "search", lambda: [_by(bench, found) for found in climbs(lab, judged, effort, request.seed)]
        )
    except KEPT as error:
        why = f"could not be checked: {type(error).__name__}: {error}"
        run.properties.append(Property("search for worse inputs", "", Verdict.UNDECIDED, why))
    run.judgements += [
        dataclasses.replace(found.best, rules=rules.of_run(found.best)) for found in run.climbs
    ]


def _by(bench: Bench, climb: Climb) -> Climb:
    """Where a climb got, judged like every cell by the reference that was asked for."""
    best = climb.best
    if best.yardstick.kind in ("exact", bench.reference):
        return climb
    return dataclasses.replace(climb, best=judge(best.case, best.outcome, bench.yardstick(best.case)))


def _check_properties(lab: Laboratory, bench: Bench, run: Gathered, steps: Steps, journal: Journal) -> None:
    """``bench`` is the one that judged the cells."""
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
        "batch permutation": lambda: arrangements.batch_permutation(lab),
        "head permutation": lambda: arrangements.head_permutation(lab),
        "batch invariance": lambda: arrangements.batch_invariance(lab),
        "memory around inputs": lambda: arrangements.memory_around_inputs(lab),
        "expanded inputs": lambda: arrangements.expanded_inputs(lab),
        "absent inputs": lambda: arrangements.absent_inputs(lab),
        "special cases": lambda: equivalences.special_cases(lab),
        "chunk sizes": lambda: equivalences.chunk_sizes(lab),
        "no tokens": lambda: equivalences.no_tokens(lab),
        "index arithmetic": lambda: large_tensors.index_arithmetic(lab),
        "inputs unchanged": lambda: properties.unchanged_inputs(run.judgements),
        "finite": lambda: properties.finite(run.judgements),
    }
    if exact:
        checks["exact on integers"] = lambda: properties.integer_exact(run.judgements)
    if floats:
        checks["reference confirmed"] = lambda: properties.confirmed_reference(run.judgements, bench)
    for name, check in checks.items():
        try:
            run.properties.append(journal.keep(f"property {name}", check))
        except KEPT as error:
            why = f"could not be checked: {type(error).__name__}: {error}"
            run.properties.append(Property(name, "", Verdict.UNDECIDED, why))
