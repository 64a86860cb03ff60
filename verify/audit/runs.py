"""Runs a kernel on every case and judges what it gives, forward and backward."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from verify.audit.ahead import Ahead, cores
from verify.audit.case import Case, Outcome
from verify.audit.document import Gathered
from verify.audit.gradient.judge import GradientJudgement, GradientYardstick, judge_gradients
from verify.audit.judge import Judgement, Yardstick, header, judge
from verify.audit.laboratory import Laboratory
from verify.audit.plain import rules
from verify.audit.record.journal import Journal
from verify.audit.steps import KEPT, Steps
from verify.model import digest
from verify.model.verdict import Verdict

_MOST_TIMEOUTS = 3


def run_all(
    lab: Laboratory,
    cases: Sequence[Case],
    differentiated: Sequence[Case],
    run: Gathered,
    steps: Steps,
    journal: Journal,
    jobs: int,
) -> None:
    """Judge every case, then the gradients of those to differentiate; both share ``jobs`` processes."""
    waiting = [case for case in cases if not journal.has(_cell(case))]
    later = [case for case in differentiated if not journal.has(_gradients(case))]
    with cores(jobs, len(waiting) + len(later)) as pool:
        _run_cells(lab, cases, run, steps, journal, Ahead(lab.bench.yardstick, waiting, pool))
        ahead = Ahead(lab.bench.gradient_yardstick, later, pool)
        _run_gradients(lab, differentiated, run, steps, journal, ahead)


def _run_cells(
    lab: Laboratory,
    cases: Sequence[Case],
    run: Gathered,
    steps: Steps,
    journal: Journal,
    ahead: Ahead[Yardstick],
) -> None:
    """One that cannot be judged is recorded and the others go on."""
    timeouts = 0
    for case in cases:
        steps.next(f"{case.name}, T = {case.shape.T}")
        if timeouts >= _MOST_TIMEOUTS:
            run.lost.append(_lost(case, f"not run: {timeouts} cells in a row hit the time limit"))
            continue
        try:
            judgement = _judged(lab, case, journal, ahead)
        except KEPT as error:
            run.lost.append(_lost(case, f"could not be judged: {type(error).__name__}: {error}"))
            continue
        timed_out = judgement.problem is not None and judgement.problem.kind == "timeout"
        timeouts = timeouts + 1 if timed_out else 0
        run.judgements.append(judgement)


def _judged(lab: Laboratory, case: Case, journal: Journal, ahead: Ahead[Yardstick]) -> Judgement:
    """One case judged, by our tolerance and by others' rules."""

    def compute() -> tuple[Outcome, Yardstick, dict[str, bool]]:
        yardstick = ahead.of(case)
        outcome = lab.run(case)
        return outcome, yardstick, rules.of_run(judge(case, outcome, yardstick))

    outcome, yardstick, said = journal.keep(_cell(case), compute)
    return dataclasses.replace(judge(case, outcome, yardstick), rules=said)


def _run_gradients(
    lab: Laboratory,
    cases: Sequence[Case],
    run: Gathered,
    steps: Steps,
    journal: Journal,
    ahead: Ahead[GradientYardstick],
) -> None:
    for case in cases:
        steps.next(f"gradients of {case.name}, T = {case.shape.T}")
        try:
            run.gradients.append(_judged_gradients(lab, case, journal, ahead))
        except KEPT as error:
            why = f"could not be judged: {type(error).__name__}: {error}"
            run.lost_gradients.append(_unjudged(case, why, inputs={}, worst_case=None))


def _judged_gradients(
    lab: Laboratory, case: Case, journal: Journal, ahead: Ahead[GradientYardstick]
) -> GradientJudgement:
    def compute() -> tuple[Outcome, GradientYardstick, dict[str, bool]]:
        yardstick = ahead.of(case)
        outcome = lab.subject.run(case, yardstick.functional)
        return outcome, yardstick, rules.of_gradients(judge_gradients(case, outcome, yardstick))

    outcome, yardstick, said = journal.keep(_gradients(case), compute)
    return dataclasses.replace(judge_gradients(case, outcome, yardstick), rules=said)


def _cell(case: Case) -> str:
    """The step that judges a case."""
    return f"cell {digest.canonical(header(case))}"


def _gradients(case: Case) -> str:
    """The step that judges its gradients."""
    return f"gradients {digest.canonical(header(case))}"


def _lost(case: Case, why: str) -> dict[str, Any]:
    """The entry of a cell about which nothing can be said."""
    return _unjudged(case, why, reference=None, output=None, state=None, worst_case=None)


def _unjudged(case: Case, why: str, **parts: Any) -> dict[str, Any]:
    problem = {"kind": "not-judged", "message": why}
    verdict = str(Verdict.UNDECIDED)
    return {**header(case), "verdict": verdict, **parts, "rules": {}, "problem": problem, "seconds": 0.0}
