"""Finds the reason of a failure among hypotheses, and claims one only after a comparison confirmed it."""

from collections.abc import Callable, Sequence

from verify.audit.diagnosis.chunks import chunk_variants
from verify.audit.diagnosis.conventions import as_declared, explain_by_convention, explain_refusals
from verify.audit.diagnosis.exponent_range import explain_nonfinite
from verify.audit.diagnosis.fitting import best_fit, measures, worst_ratio
from verify.audit.diagnosis.gate_reading import explain_gate_reading
from verify.audit.diagnosis.inverse import explain_inverse
from verify.audit.diagnosis.leftover import explain_leftover
from verify.audit.diagnosis.merging import merge_variants
from verify.audit.diagnosis.narrow_formats import explain_narrow_format
from verify.audit.diagnosis.norm_epsilon import explain_norm_epsilon
from verify.audit.diagnosis.rarer_variants import RARER_VARIANTS
from verify.audit.diagnosis.tail import explain_tail
from verify.audit.diagnosis.unstable import explain_instability, loses
from verify.audit.diagnosis.variants import VARIANTS
from verify.audit.diagnosis.zero_scale import explain_zero_scale
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory

_OF_SHAPES = ("raised", "wrong-shape")
"""What a kernel does with arrays of another shape than its own."""
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
    if lost := [j for j in usable if loses(j)]:
        findings.append(explain_instability(lab, lost))
        usable = [j for j in usable if not loses(j)]
    if overflowing := [j for j in usable if j.nonfinite]:
        findings.append(explain_nonfinite(lab, overflowing, passing))
    wrong = [j for j in usable if not j.nonfinite and any(m is not None and m.failed for m in measures(j))]
    if wrong:
        reason = _explain_numbers(lab, wrong, passing, overflowing)
        if reason is not None:
            findings.append(reason)
        elif not leaks:
            findings.append(_unexplained(wrong))
    elif overflowing or any(j.problem is not None and j.problem.kind in _OF_SHAPES for j in failing):
        findings += [hint] if (hint := explain_refusals(lab)) is not None else []
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


def describe(judgement: Judgement) -> str:
    """The cell in a few words."""
    s = judgement.case.shape
    sizes = f"B={s.B} T={s.T} H={s.H} HV={s.HV} K={s.K} V={s.V}"
    return f"class {judgement.case.name}, {sizes}, seed {judgement.case.seed}"


def _explain_numbers(
    lab: Laboratory, wrong: list[Judgement], passing: list[Judgement], overflowing: list[Judgement]
) -> Finding | None:
    hypotheses: tuple[Callable[[], Finding | None], ...] = (
        lambda: explain_zero_scale(lab, wrong),
        lambda: explain_by_convention(lab, wrong, passing),
        lambda: best_fit(as_declared(lab.convention, (*VARIANTS, *RARER_VARIANTS)), wrong, passing),
        lambda: explain_norm_epsilon(lab, wrong, passing),
        lambda: explain_leftover(lab),
        lambda: explain_tail(lab, wrong),
        lambda: explain_narrow_format(lab, wrong),
        lambda: explain_inverse(lab, [*wrong, *overflowing]),
        lambda: explain_gate_reading(lab, wrong, passing),
        lambda: best_fit(merge_variants(wrong), wrong, passing),
        lambda: best_fit(chunk_variants(lab.convention), wrong, passing),
    )
    return next((found for hypothesis in hypotheses if (found := hypothesis()) is not None), None)


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
