"""Compares the gradients a kernel gave with what they should be."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Array, Case, Outcome, Problem
from verify.audit.gradient.functional import Cotangent
from verify.audit.judge import Measure, header, measure, number
from verify.audit.reference.account import reference_entry
from verify.audit.reference.results import Digits, Reference
from verify.audit.tolerance.bounds import quantile, underflow
from verify.audit.tolerance.prediction import Algorithm, GradientPrediction
from verify.model.verdict import Verdict


@dataclass(frozen=True, eq=False)
class GradientYardstick:
    """The gradients of one functional, how far a correct kernel may stay from them, and what is predicted.

    All by input field: values of the input's shape, tolerances and deviations for the norms of rows.
    ``kind``, ``note``, ``digits``: the level of the gradients, why it is not the one asked for, what stands.
    """

    functional: Cotangent
    values: Mapping[str, Array]
    tolerances: Mapping[str, Array]
    deviations: Mapping[str, Array]
    kind: str = "float64"
    note: str = ""
    digits: Mapping[str, Digits] = dataclasses.field(default_factory=dict)


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
        """The fields whose gradients are wrong."""
        return tuple(field for field, m in self.measures.items() if m.failed)

    @property
    def nonfinite(self) -> tuple[str, ...]:
        """The fields whose gradients are not finite."""
        return tuple(field for field, m in self.measures.items() if m.nonfinite)

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
        problem = self.problem
        return {
            **header(self.case),
            "verdict": str(self.verdict),
            **reference_entry(self.yardstick),
            "inputs": {
                field: m.figures(self.case.dtype_of(field), tokens=field in self.case.kind.tokens)
                for field, m in self.measures.items()
            },
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
    *,
    cells: int,
    false_alarm: float,
) -> dict[str, Array]:
    """As `tolerance.bounds.tolerance`: every row of every gradient gets an equal part of the false alarms."""
    rows = sum(array.size for array in prediction.rows.values())
    factor = quantile(false_alarm / (cells * max(rows, 1)), prediction.runs)
    flushed = _flushed(case, functional, reference, algorithm)
    return {field: factor * array + errors[field] + flushed for field, array in prediction.rows.items()}


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
