"""Finds the reason of a failure among hypotheses, and claims one only after a comparison confirmed it."""

from collections.abc import Callable, Sequence

import numpy as np

from verify.audit.diagnosis.exponent_range import explain_nonfinite
from verify.audit.diagnosis.inverse import explain_inverse
from verify.audit.diagnosis.state_format import explain_state_format
from verify.audit.diagnosis.tail import explain_tail
from verify.audit.diagnosis.variants import VARIANTS, Result, Variant
from verify.audit.judge import Judgement, Measure, measure
from verify.audit.laboratory import Finding, Laboratory

_MOST_FAILING = 6
_MOST_PASSING = 4
_LARGEST = 200_000
"""Multiplications per variant and cell; larger cells say no more."""

PROBLEMS = {
    "raised": "the target raises an error",
    "timeout": "the target does not return in time",
    "killed": "the target ends its process",
    "memory": "the target runs out of memory",
    "wrong-return": "the target returns something else than the convention says",
    "wrong-shape": "wrong shape",
    "wrong-dtype": "wrong dtype",
    "inputs-mutated": "the target writes into its inputs",
}


def diagnose(lab: Laboratory, judgements: Sequence[Judgement], leaks: bool) -> list[Finding]:
    """The findings on all cells that were run.

    Args:
        lab: runs further inputs where a hypothesis needs them.
        judgements: every cell.
        leaks: whether the causality property found that tokens read later ones; that explains wrong numbers.
    """
    failing = [j for j in judgements if j.failed]
    passing = [j for j in judgements if not j.failed and j.output is not None]
    findings = problems(judgements)
    usable = [j for j in failing if j.output is not None]
    if overflowing := [j for j in usable if j.nonfinite]:
        findings.append(explain_nonfinite(lab, overflowing, passing))
    wrong = [j for j in usable if not j.nonfinite and any(m is not None and m.failed for m in measures(j))]
    if wrong:
        reason = _explain_numbers(lab, wrong, passing, overflowing)
        if reason is not None:
            findings.append(reason)
        elif not leaks:
            findings.append(_unexplained(wrong))
    return merged(findings)


def problems(judgements: Sequence[Judgement]) -> list[Finding]:
    """Crashes, hangs and broken promises, one finding per kind."""
    findings = []
    for kind, reason in PROBLEMS.items():
        of_kind = [j for j in judgements if j.problem is not None and j.problem.kind == kind]
        if of_kind:
            first = of_kind[0]
            assert first.problem is not None
            findings.append(
                Finding(
                    reason,
                    first.problem.message,
                    f"{len(of_kind)} of {len(judgements)} cells, first {describe(first)}",
                )
            )
    return findings


def measures(judgement: Judgement) -> tuple[Measure | None, Measure | None]:
    return judgement.output, judgement.state


def describe(judgement: Judgement) -> str:
    """The cell in a few words."""
    s = judgement.case.shape
    sizes = f"B={s.B} T={s.T} H={s.H} HV={s.HV} K={s.K} V={s.V}"
    return f"class {judgement.case.name}, {sizes}, seed {judgement.case.seed}"


def worst_ratio(judgement: Judgement) -> float:
    return max(m.worst_ratio for m in measures(judgement) if m is not None)


def _explain_numbers(
    lab: Laboratory, wrong: list[Judgement], passing: list[Judgement], overflowing: list[Judgement]
) -> Finding | None:
    hypotheses: tuple[Callable[[], Finding | None], ...] = (
        lambda: explain_by_variants(wrong, passing),
        lambda: explain_tail(lab, wrong),
        lambda: explain_state_format(lab, wrong),
        lambda: explain_inverse(lab, [*wrong, *overflowing]),
    )
    return next((found for hypothesis in hypotheses if (found := hypothesis()) is not None), None)


def explain_by_variants(wrong: Sequence[Judgement], passing: Sequence[Judgement]) -> Finding | None:
    """The variant that gives what the kernel gives, on failing and on passing cells alike."""
    failing = _small(wrong, _MOST_FAILING)
    agreeing = _small(passing, _MOST_PASSING)
    if not failing:
        return None
    best: tuple[float, Variant] | None = None
    for variant in VARIANTS:
        fit = _fit(variant, failing, agreeing)
        if fit is not None and fit <= 1 and (best is None or fit < best[0]):
            best = fit, variant
    if best is None:
        return None
    fit, variant = best
    away = max(map(worst_ratio, failing))
    evidence = (
        f"on {len(failing)} failing cells the result is within {fit:.2g} of the tolerance around this "
        f"variant, evaluated in float64, and up to {away:.3g} tolerances from the definition"
    )
    if agreeing:
        evidence += f"; {len(agreeing)} passing cells agree with it too"
    return Finding(variant.reason, variant.detail, evidence)


def _small(judgements: Sequence[Judgement], most: int) -> list[Judgement]:
    """Small cells, of as many classes as possible; float cells before exact ones, whose tolerance is 0."""

    def size(j: Judgement) -> int:
        s = j.case.shape
        return s.B * s.T * s.HV * s.K * s.V

    usable = sorted(
        (j for j in judgements if size(j) <= _LARGEST), key=lambda j: (j.yardstick.kind == "exact", size(j))
    )
    seen: dict[str, int] = {}
    ranked = []
    for j in usable:
        seen[j.case.name] = seen.get(j.case.name, 0) + 1
        ranked.append((seen[j.case.name], j))
    chosen = [j for _, j in sorted(ranked, key=lambda pair: pair[0])]
    floats = [j for j in chosen if j.yardstick.kind != "exact"]
    return (floats or chosen)[:most]


def _fit(variant: Variant, failing: Sequence[Judgement], passing: Sequence[Judgement]) -> float | None:
    """The largest distance from the variant in tolerances; None where the variant cannot be the reason."""
    worst = 0.0
    for j in failing:
        result = variant.run(j.case)
        if result is None:
            return None
        worst = max(worst, distance(j, result))
        if worst > 1:
            return None
    for j in passing:
        result = variant.run(j.case)
        if result is not None and distance(j, result) > 1:
            return None
    return worst


def distance(judgement: Judgement, result: Result) -> float:
    """How far the kernel is from a variant, in tolerances of the case.

    A variant of larger numbers has proportionally larger rounding errors, so the tolerance grows with them.
    """
    y, o = judgement.yardstick, judgement.outcome
    worst = 0.0
    for computed, expected, reference, tolerance in (
        (o.output, result[0], y.output, y.output_tolerance),
        (o.final_state, result[1], y.state, y.state_tolerance),
    ):
        if computed is not None:
            size = float(np.abs(reference).max(initial=0.0))
            growth = max(1.0, float(np.abs(expected).max(initial=0.0)) / size) if size else 1.0
            worst = max(worst, measure(computed, expected, tolerance * growth, tolerance).worst_ratio)
    return worst


def _unexplained(wrong: Sequence[Judgement]) -> Finding:
    smallest = min(wrong, key=lambda j: j.case.k.size + j.case.v.size)
    classes = sorted({j.case.name for j in wrong})
    places = [w for w, m in zip(("output", "final state"), measures(smallest), strict=True) if m and m.failed]
    return Finding(
        "unexplained",
        f"wrong numbers in {', '.join(classes)}; no hypothesis matched",
        f"smallest failing cell: {describe(smallest)}; {' and '.join(places)} "
        f"{worst_ratio(smallest):.3g} tolerances from the definition",
    )


def merged(findings: list[Finding]) -> list[Finding]:
    """One finding per reason."""
    return list({finding.reason: finding for finding in reversed(findings)}.values())[::-1]
