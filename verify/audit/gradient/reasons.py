"""Why gradients are wrong: reasons, each confirmed by a comparison."""

from collections.abc import Sequence

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.diagnosis.backward import (
    explain_crossed_heads,
    explain_low_logits,
    explain_other_keys,
    explain_subtraction,
)
from verify.audit.diagnosis.exponent_range import exponent_limit, thresholds
from verify.audit.diagnosis.not_finite import explain_infinite_gate
from verify.audit.diagnosis.reasons import PROBLEMS
from verify.audit.gradient.activations import passages, through
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.gradient.reference import float64_gradients
from verify.audit.judge import header, measure
from verify.audit.laboratory import Finding, Laboratory

_BACKWARD = {"no-gradient": "gradients do not reach an input", "raised": "differentiating raises an error"}
_NAMES = {"g": "the gate", "beta": "β", "initial_state": "the initial state"}


def explain_gradients(lab: Laboratory, judgements: Sequence[GradientJudgement]) -> list[Finding]:
    """One finding per way in which gradients fail."""
    findings = _problems(judgements)
    if broken := [j for j in judgements if j.nonfinite]:
        findings.append(_not_finite(lab, broken))
    wrong = [j for j in judgements if j.failing and not j.nonfinite]
    if measured := [j for j in wrong if any(m.failed for m in j.measures.values())]:
        findings.append(_wrong(lab, measured))
    elif wrong:
        findings.append(_beyond_worst_case(wrong))
    return findings


def _beyond_worst_case(wrong: Sequence[GradientJudgement]) -> Finding:
    """The reason when every gradient is within its tolerance, and still no rounding explains it."""
    ratios = {
        field: max((j.worst_case_ratios or {})[field] for j in wrong if field in j.failing)
        for field in dict.fromkeys(field for j in wrong for field in j.failing)
    }
    listed = ", ".join(f"of {_NAMES.get(field, field)} {ratio:.3g}" for field, ratio in ratios.items())
    return Finding(
        "gradients off by more than any rounding",
        "the error exceeds the bound that is proved for every order of operations of this form",
        f"times that bound: {listed}, smallest {_where(min(wrong, key=lambda j: j.case.v.size))}",
    )


def _problems(judgements: Sequence[GradientJudgement]) -> list[Finding]:
    findings = {}
    for j in judgements:
        if j.problem is not None and j.problem.kind not in findings:
            reason = _BACKWARD.get(j.problem.kind) or PROBLEMS[j.problem.kind]
            findings[j.problem.kind] = Finding(reason, j.problem.message, f"first {_where(j)}")
    return list(findings.values())


def _not_finite(lab: Laboratory, broken: Sequence[GradientJudgement]) -> Finding:
    """With the strongest constant gate that the gradients stand, when the gate is the cause."""
    first = min(broken, key=lambda j: j.case.v.size)
    fields = ", ".join(dict.fromkeys(field for j in broken for field in j.nonfinite))
    where = f"gradients of {fields} in {len(broken)} cells, smallest {_where(first)}"
    if lab.convention.kind.gate:

        def finite(case: Case) -> bool:
            found = lab.run_gradients(case).gradients
            return bool(found) and all(np.isfinite(x).all() for x in found.values())

        infinite = all(np.isneginf(j.case.log_decay).any() for j in broken)
        if infinite and (reason := explain_infinite_gate(lab, finite, where)):
            return reason
        measured = {t: g for t, g in thresholds(lab, finite).items() if g is not None}
        limit = exponent_limit(lab, measured)
        if limit is not None:
            name, value, steps = limit
            listed = "; ".join(f"T = {t}: {round(n)}·{measured[t]:.5g}" for t, n in steps.items())
            return Finding(
                "gradient of an exponential that the mask hides",
                f"gradients are finite for mild gates and not for strong ones: the exponential of a positive "
                f"span of gates overflows where span·|g| = {value:.1f} = ln(max {name}), and its gradient is "
                f"0·inf; mask the exponent, not the exponential",
                f"constant gates, bisected: {listed}; {where}",
            )
        if measured:
            listed = "; ".join(f"T = {t}: |g| = {g:.5g}" for t, g in measured.items())
            return Finding("gradient not finite for strong gates", where, f"not finite from {listed}")
    if (found := explain_low_logits(lab, where)) is not None:
        return found
    return Finding("gradient not finite", f"finite inputs give gradients that are not: {where}", where)


def _wrong(lab: Laboratory, wrong: Sequence[GradientJudgement]) -> Finding:
    fields = list(dict.fromkeys(field for j in wrong for field in j.failing))
    named = ", ".join(_NAMES.get(field, field) for field in fields)
    worst = max(m.worst_ratio for j in wrong for m in j.measures.values())
    evidence = (
        f"{len(wrong)} cells, up to {worst:.3g} tolerances from the adjoint of the definition, "
        f"smallest {_where(min(wrong, key=lambda j: j.case.v.size))}"
    )
    if all(_agrees(lab, j, _without_state(lab, j)) for j in wrong):
        return Finding(
            "gradient of the final state ignored",
            f"the gradients of {named} are those of the output alone",
            f"{evidence}; within the tolerances of the gradients of the output",
        )
    if fields == ["g"] and (found := explain_subtraction(lab, evidence)) is not None:
        return found
    factors = {field: _factor(field, wrong) for field in fields}
    scaled = {field: c for field, c in factors.items() if c is not None}
    if len(scaled) == len(fields):
        listed = ", ".join(
            f"of {_NAMES.get(f, f)} is " + ("0" if c == 0 else f"{c:.6g} times what it should be")
            for f, c in scaled.items()
        )
        return Finding(f"gradient of {named} off by a factor", f"the gradient {listed}", evidence)
    if (found := explain_crossed_heads(lab, evidence) or explain_other_keys(lab, evidence)) is not None:
        return found
    return Finding(
        f"wrong gradient of {named}", f"the gradient of {named} is not that of the definition", evidence
    )


def _without_state(lab: Laboratory, judgement: GradientJudgement) -> dict[str, Array]:
    """The gradients of the part of the functional that reads the output."""
    functional, case, c = judgement.yardstick.functional, judgement.case, lab.convention
    alone = Cotangent(functional.output, np.zeros_like(functional.state))
    gradients = float64_gradients(c.as_seen(case), alone)
    return through(gradients, passages(c, case), c.differentiated(case)).values


def _agrees(lab: Laboratory, judgement: GradientJudgement, values: dict[str, Array]) -> bool:
    y = judgement.yardstick
    if not y.functional.state.any() or lab.convention.gradients != "output-and-state":
        return False
    return all(
        measure(array, values[field], y.tolerances[field], y.deviations[field]).worst_ratio <= 1
        for field, array in judgement.outcome.gradients.items()
    )


def _factor(field: str, wrong: Sequence[GradientJudgement]) -> float | None:
    """The one number that a gradient is multiplied by in every cell, within the tolerances."""
    pairs = [(j.outcome.gradients[field], j.yardstick, field) for j in wrong if field in j.failing]
    above = sum(float((x * y.values[field]).sum()) for x, y, _ in pairs)
    below = sum(float(np.square(y.values[field]).sum()) for _, y, _ in pairs)
    if not below:
        return None
    factor = above / below
    fits = all(
        measure(
            x, factor * y.values[field], y.tolerances[field] * max(1.0, abs(factor)), y.deviations[field]
        ).worst_ratio
        <= 1
        for x, y, _ in pairs
    )
    return factor if fits else None


def _where(judgement: GradientJudgement) -> str:
    cell = header(judgement.case)
    sizes = " ".join(f"{name}={size}" for name, size in cell["shape"].items())
    return f"class {cell['class']}, {sizes}, seed {cell['seed']}"
