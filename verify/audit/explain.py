"""Why a kernel fails: reasons that a comparison confirmed, and the smallest failing input."""

from collections.abc import Sequence

from verify.audit.diagnosis.reasons import diagnose, merged, problems
from verify.audit.document import Gathered
from verify.audit.failure.reproduce import Reproducer
from verify.audit.failure.shrink import shrink, shrink_gradients
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.record.journal import Journal
from verify.audit.steps import KEPT, Steps
from verify.model.verdict import Verdict


def explain(lab: Laboratory, run: Gathered, steps: Steps, journal: Journal) -> None:
    """Reasons and a small failing input, when anything failed."""
    broken = [p for p in run.properties if p.verdict is Verdict.REFUTED]
    judged = [*run.judgements, *(j for p in broken for j in p.failing)]
    failing = [j for j in judged if j.failed]
    wrong_gradients = [j for j in run.gradients if j.failed]
    if not failing and not broken and not wrong_gradients:
        return
    steps.next("reasons")
    run.findings = journal.keep("reasons", lambda: _reasons(lab, run, judged))
    if failing:
        steps.next("shrinking")
        smallest = min(failing, key=lambda j: (j.problem is not None, j.case.v.size))
        run.shrunk = journal.keep("shrinking", lambda: shrink(lab, smallest))
        run.reproducer = Reproducer.of(run.shrunk)
    elif wrong_gradients:
        steps.next("shrinking")
        worst = min(wrong_gradients, key=lambda j: (j.problem is not None, j.case.v.size))
        shrunk = journal.keep("shrinking", lambda: shrink_gradients(lab, worst))
        run.reproducer = Reproducer.of_gradients(shrunk)
    else:
        pair = next((p for p in broken if p.pair is not None), None)
        if pair is not None and pair.pair is not None:
            run.reproducer = Reproducer(pair.pair[0], pair.detail, other=pair.pair[1], cut=pair.cut)


def _reasons(lab: Laboratory, run: Gathered, judged: Sequence[Judgement]) -> list[Finding]:
    broken = [p for p in run.properties if p.verdict is Verdict.REFUTED]
    findings = [p.finding for p in broken if p.finding is not None]
    try:
        if broken or any(j.failed for j in judged):
            findings += diagnose(lab, judged, any(p.leaks for p in broken))
        findings = merged(findings + explain_gradients(lab, [j for j in run.gradients if j.failed]))
    except KEPT as error:
        findings += problems(run.judgements)
        findings.append(
            Finding("unexplained", f"the search for a reason failed: {error}", type(error).__name__)
        )
    beyond = [j for j in judged if j.beyond_worst_case and not j.nonfinite]
    if beyond and all(finding.reason == "unexplained" for finding in findings):
        findings = [_beyond_worst_case(beyond)]
    return findings or [Finding(f"{p.name} violated", p.statement, p.detail) for p in broken]


def _beyond_worst_case(judged: Sequence[Judgement]) -> Finding:
    """The reason when nothing more is known than that the errors are no rounding errors."""
    ratios = [x for j in judged for x in (j.worst_case_ratios or {}).values() if x is not None]
    classes = ", ".join(dict.fromkeys(j.case.name for j in judged))
    return Finding(
        "more than any rounding",
        "the error exceeds the bound that is proved for every order of operations of this form",
        f"{max(ratios):.3g} times that bound, in {classes}",
    )
