"""Compares the gradients a kernel gave with what they should be."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Array, Case, Outcome, Problem
from verify.audit.gradient.functional import Cotangent
from verify.audit.judge import Measure, header, measure, number, over
from verify.audit.reference.account import reference_entry
from verify.audit.reference.results import Digits, Reference
from verify.audit.tolerance.predicted.bounds import quantile, underflow
from verify.audit.tolerance.predicted.prediction import Algorithm, GradientPrediction
from verify.model.verdict import Verdict


@dataclass(frozen=True, eq=False)
class GradientYardstick:
    """The gradients of one functional, how far a correct kernel may stay from them, and what is predicted.

    All by input field: values of the input's shape, tolerances and deviations for the norms of rows.
    ``kind``, ``note``, ``digits``: the level of the gradients, why it is not the one asked for, what stands.
    ``worst_case``: what no rounding of a correct kernel exceeds, where that is proved for its form.
    """

    functional: Cotangent
    values: Mapping[str, Array]
    tolerances: Mapping[str, Array]
    deviations: Mapping[str, Array]
    kind: str = "float64"
    note: str = ""
    digits: Mapping[str, Digits] = dataclasses.field(default_factory=dict)
    worst_case: Mapping[str, Array] | None = None


@dataclass(frozen=True, eq=False)
class GradientJudgement:
    """One differentiated run of a kernel, judged; ``rules`` is what others' rules say of it, by name."""

    case: Case
    outcome: Outcome
    yardstick: GradientYardstick
    measures: Mapping[str, Measure]
    rules: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    @property
    def problem(self) -> Problem | None:
        return self.outcome.problem

    @property
    def failing(self) -> tuple[str, ...]:
        """The fields whose gradients are wrong, by their tolerance or by the worst case."""
        return tuple(
            field for field, m in self.measures.items() if m.failed or field in self.beyond_worst_case
        )

    @property
    def nonfinite(self) -> tuple[str, ...]:
        """The fields whose gradients are not finite."""
        return tuple(field for field, m in self.measures.items() if m.nonfinite)

    @property
    def worst_case_ratios(self) -> dict[str, float] | None:
        """By field the largest error over the proved bound, where there is one; None for a form without."""
        bound = self.yardstick.worst_case
        if bound is None:
            return None
        return {
            field: float(over(m.error, bound[field]).max(initial=0.0))
            for field, m in self.measures.items()
            if field in bound
        }

    @property
    def beyond_worst_case(self) -> tuple[str, ...]:
        """The fields whose errors no rounding at all explains."""
        return tuple(field for field, x in (self.worst_case_ratios or {}).items() if not x <= 1)

    @property
    def failed(self) -> bool:
        return self.verdict is Verdict.REFUTED

    @property
    def verdict(self) -> Verdict:
        if self.problem is not None or self.failing:
            return Verdict.REFUTED
        return Verdict.SAMPLED if self.measures else Verdict.UNDECIDED

    def entry(self) -> dict[str, Any]:
        """The certificate's entry."""
        problem, ratios = self.problem, self.worst_case_ratios
        return {
            **header(self.case),
            "verdict": str(self.verdict),
            **reference_entry(self.yardstick),
            "inputs": {
                field: m.figures(self.case.dtype_of(field), tokens=field in self.case.kind.tokens)
                for field, m in self.measures.items()
            },
            "worst_case": None if ratios is None else {field: number(x) for field, x in ratios.items()},
            "rules": dict(self.rules),
            "problem": None if problem is None else {"kind": problem.kind, "message": problem.message},
            "seconds": number(self.outcome.seconds),
        }


def judge_gradients(case: Case, outcome: Outcome, yardstick: GradientYardstick) -> GradientJudgement:
    """Measure the gradients of an outcome."""
    y = yardstick
    measures = {
        field: measure(array, y.values[field], y.tolerances[field], y.deviations[field])
        for field, array in outcome.gradients.items()
    }
    return GradientJudgement(case, outcome, yardstick, measures)


def gradient_tolerances(
    case: Case,
    functional: Cotangent,
    reference: Reference,
    errors: Mapping[str, Array],
    prediction: GradientPrediction,
    algorithm: Algorithm,
    reach: Mapping[str, float],
    *,
    cells: int,
    false_alarm: float,
) -> dict[str, Array]:
    """As `tolerance.bounds.tolerance`: every row of every gradient gets an equal part of the false alarms.

    ``reach``: by field, how many times an underflow enters it, where that is not once.
    """
    rows = sum(array.size for array in prediction.rows.values())
    factor = quantile(false_alarm / (cells * max(rows, 1)), prediction.runs)
    flushed = _flushed(case, functional, reference, algorithm)
    return {
        field: factor * array + errors[field] + flushed * reach.get(field, 1.0)
        for field, array in prediction.rows.items()
    }


def _flushed(case: Case, functional: Cotangent, reference: Reference, algorithm: Algorithm) -> float:
    """What flushing subnormals to zero may change, forward and backward.

    An error of the state or of its gradient reaches a gradient through at most one factor of each kind: a
    query, key, value, state, coefficient of the functional; write strengths are in `underflow`.
    """
    output, state = underflow(case, algorithm)
    largest = math.prod(
        1 + float(np.abs(x).max(initial=0.0)) * math.sqrt(x.shape[-1])
        for x in (case.q, case.k, case.v, reference.final_state, functional.output, functional.state)
        if x.size
    )
    return 2 * largest * float(max(output.max(initial=0.0), state.max(initial=0.0)))
