"""What a certification gathered, and the certificate made of it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from verify.audit.bench import Bench
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.reasons import describe
from verify.audit.failure.reproduce import Reproducer
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.inputs.classes import REAL_CLASSES
from verify.audit.judge import Judgement, header, number
from verify.audit.laboratory import Finding
from verify.audit.plain import rules
from verify.audit.plain.worst import worst
from verify.audit.properties.basic import Property
from verify.audit.reference.account import account
from verify.audit.request import Request
from verify.audit.samples import samples
from verify.audit.search.climb import NAME as CLIMBED
from verify.audit.search.climb import Climb
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.gradient import rigorous as gradient_rigorous
from verify.audit.tolerance.worst_case.rigorous import Derivation, derivation
from verify.model import certificate, environment
from verify.model.verdict import Verdict, weakest

_ABOUT = {kind.name: kind.why for kind in REAL_CLASSES} | {
    "integer": "every correct kernel is exact: layout, mask, order and index faults have nowhere to hide",
    "integer-reset": "exact, with decays to 0 inside a chunk",
    CLIMBED: "where a search came to that started at the inputs with the largest error over tolerance",
}
_ASSUMPTIONS = [
    "rounding errors are independent and have mean 0, as in the stochastic-rounding model of this form",
    "the errors of a row are jointly Gaussian",
    "every operation rounds to the stated compute dtype or better (no TF32, no truncating accumulators)",
]


@dataclass
class Gathered:
    """What a certification has gathered so far; kept whatever happens next."""

    judgements: list[Judgement] = field(default_factory=list)
    gradients: list[GradientJudgement] = field(default_factory=list)
    lost_gradients: list[dict[str, Any]] = field(default_factory=list)
    lost: list[dict[str, Any]] = field(default_factory=list)
    climbs: list[Climb] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    shrunk: Judgement | None = None
    reproducer: Reproducer | None = None


def document(identity: dict[str, Any], bench: Bench, run: Gathered, request: Request) -> dict[str, Any]:
    """The certificate, not yet sealed."""
    convention, dtype = bench.convention, request.dtype
    algorithm = Algorithm.of(convention, dtype)
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
        "budget": request.budget,
        "seed": request.seed,
        "verdict": str(verdict),
        "summary": _summary(verdict, run, entries, gradients),
        "model": _model(convention, bench, run, dtype),
        "worst_case": _worst_case(convention, algorithm, derivation(convention.kind, algorithm), entries),
        "gradient_worst_case": _gradient_worst_case(convention, algorithm, gradients),
        "classes": _classes(entries),
        "plain": worst(entries, gradients),
        "rules": rules.summary([(entry["class"], entry["rules"]) for entry in (*entries, *gradients)]),
        "reference": account(request.reference, entries, gradients),
        "cells": entries,
        "gradients": gradients,
        "search": [_climbed(climb) for climb in run.climbs],
        "properties": [p.entry() for p in run.properties],
        "findings": [dataclasses.asdict(finding) for finding in run.findings],
        "samples": samples([*([run.shrunk] if run.shrunk else []), *run.judgements], convention),
        "reproducer": None if run.reproducer is None else run.reproducer.entry(),
        "environment": environment.describe(request.seed),
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


def _model(convention: Convention, bench: Bench, run: Gathered, dtype: str) -> dict[str, Any]:
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


def _gradient_worst_case(
    convention: Convention, algorithm: Algorithm, gradients: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """The same for gradients; None where none were asked for."""
    found = gradient_rigorous.derivation(convention.kind, algorithm)
    return _worst_case(convention, algorithm, found, gradients) if gradients else None


def _worst_case(
    convention: Convention, algorithm: Algorithm, found: Derivation | None, entries: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The errors beside the bound that no rounding exceeds."""
    if found is None:
        about = f"not derived for the {algorithm.form} form of {convention.mechanism}"
        return {"derived": False, "about": about, "assumptions": [], "worst_ratio": None, "met": None}
    bounded = [entry["worst_case"] for entry in entries if entry.get("worst_case") is not None]
    ratios = [float(x) for parts in bounded for x in parts.values() if x is not None]
    worst = max(ratios, key=lambda x: (x != x, x), default=None)
    return {
        "derived": True,
        "about": found.about,
        "assumptions": list(found.assumptions),
        "worst_ratio": None if worst is None else number(worst),
        "met": None if worst is None else worst <= 1,
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


def _climbed(found: Climb) -> dict[str, Any]:
    """Where a search began, what its height was at every step, and how often it ran the kernel."""
    return {
        "start": header(found.start),
        "heights": [number(x) for x in found.pressures],
        "runs": found.tried,
    }


def _summary(
    verdict: Verdict, run: Gathered, entries: Sequence[dict[str, Any]], gradients: Sequence[dict[str, Any]]
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
