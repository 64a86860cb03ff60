"""Compares what a kernel gave with what it should have given, and puts the difference into figures."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from verify.audit.case import Array, Case, Outcome, Problem
from verify.audit.plain.figures import plain
from verify.audit.reference.account import reference_entry
from verify.audit.reference.results import Digits
from verify.audit.tolerance.predicted.stability import Instability
from verify.audit.tolerance.worst_case.rigorous import WorstCase
from verify.model.verdict import Verdict
from verify.numbers.formats import format_named


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What a case should give, and how far a correct kernel may stay from it.

    Args:
        kind: ``"exact"`` (bit for bit, tolerance 0) or the level of its reference.
        output: ``[B, T, HV, V]``.
        state: ``[B, HV, K, V]``.
        output_tolerance: bound on the 2-norm over V of the output's error, ``[B, T, HV]``.
        state_tolerance: bound on the Frobenius norm of the state's error, ``[B, HV]``.
        output_deviation: predicted standard deviation of that 2-norm, ``[B, T, HV]``.
        state_deviation: likewise for the state, ``[B, HV]``.
        output_bound: rigorous bound on the 2-norm over V of ``output``'s own error, part of the tolerance.
        worst_case: what no rounding of a correct kernel can exceed, where that is proved for its form.
        unstable: where the declared algorithm is predicted to lose the result, and tolerances are the
            recurrence's; None where it is not.
        note: why the reference is of another level than the one asked for; "" when it is not.
        digits: of output and state, how many digits stand, where the reference knows.
    """

    kind: str
    output: Array
    state: Array
    output_tolerance: Array
    state_tolerance: Array
    output_deviation: Array
    state_deviation: Array
    output_bound: Array
    worst_case: WorstCase | None = None
    unstable: Instability | None = None
    note: str = ""
    digits: Mapping[str, Digits] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Measure:
    """The error of one tensor: norms per token and head (output) or per head (state, constant)."""

    error: Array
    tolerance: Array
    deviation: Array
    reference: Array
    difference: Array

    @property
    def ratio(self) -> Array:
        """Error over tolerance: 0 where there is no error, infinite where a zero tolerance is missed."""
        return over(self.error, self.tolerance)

    @property
    def worst_ratio(self) -> float:
        return float(self.ratio.max(initial=0.0))

    @property
    def nonfinite(self) -> int:
        return int(np.count_nonzero(~np.isfinite(self.difference)))

    @property
    def failed(self) -> bool:
        return self.worst_ratio > 1

    def figures(self, came_back: str, *, tokens: bool, per_token: bool = False) -> dict[str, Any]:
        """The certificate's entry; non-finite numbers are written as strings.

        Args:
            came_back: the dtype of what was measured.
            tokens: whether axes 1 and 2 are tokens and heads.
            per_token: whether to list the error and tolerance of every token.
        """
        at = np.unravel_index(int(np.argmax(self.ratio)), self.ratio.shape) if self.ratio.size else None
        axes = {3: ("b", "t", "h"), 2: ("b", "h"), 1: ("h",)}[self.error.ndim]
        figures: dict[str, Any] = {
            "max_abs_error": number(_largest(self.difference)),
            "max_abs_reference": number(_largest(self.reference)),
            "worst_ratio": number(self.worst_ratio),
            "worst_over_deviation": number(float(over(self.error, self.deviation).max(initial=0.0))),
            "rms_ratio": number(_rms_ratio(self.difference, self.reference)),
            "nonfinite": self.nonfinite,
            "worst_at": None if at is None else dict(zip(axes, map(int, at), strict=True)),
            "plain": self._plain(came_back, tokens),
        }
        if per_token:
            figures["per_token"] = self._per_token()
        return figures

    def _plain(self, came_back: str, tokens: bool) -> dict[str, float | str | int | None]:
        numbers = plain(self.difference, self.reference, format_named(came_back), tokens=tokens)
        return {name: number(x) if isinstance(x, float) else x for name, x in asdict(numbers).items()}

    def _per_token(self) -> dict[str, list[float | str]]:
        """Per token the place (b, h) with the largest ratio: its error and its tolerance."""
        tokens = self.error.shape[1]
        rows = [np.moveaxis(a, 1, 0).reshape(tokens, -1) for a in (self.error, self.tolerance, self.ratio)]
        if not self.error.size:
            return {"error": [], "tolerance": []}
        worst = np.argmax(rows[2], axis=1)[:, None]
        error, tolerance = (np.take_along_axis(row, worst, axis=1)[:, 0] for row in rows[:2])
        return {"error": [number(x) for x in error], "tolerance": [number(x) for x in tolerance]}


@dataclass(frozen=True, eq=False)
class Judgement:
    """One run of a kernel on one case, judged; ``rules`` is what others' rules say of it, by name."""

    case: Case
    outcome: Outcome
    yardstick: Yardstick
    output: Measure | None
    state: Measure | None
    rules: Mapping[str, bool] = field(default_factory=dict)

    @property
    def problem(self) -> Problem | None:
        return self.outcome.problem

    @property
    def failed(self) -> bool:
        return self.verdict is Verdict.REFUTED

    @property
    def verdict(self) -> Verdict:
        measures = [m for m in (self.output, self.state) if m is not None]
        if self.problem is not None or any(m.failed for m in measures) or self.beyond_worst_case:
            return Verdict.REFUTED
        return Verdict.SAMPLED if measures else Verdict.UNDECIDED

    @property
    def nonfinite(self) -> int:
        return sum(m.nonfinite for m in (self.output, self.state) if m is not None)

    @property
    def worst_case_ratios(self) -> dict[str, float | None] | None:
        """Largest error of the output and of the state over the proved bound; None where there is none."""
        bound = self.yardstick.worst_case
        if bound is None:
            return None
        pairs = {"output": (self.output, bound.output), "state": (self.state, bound.state)}
        return {
            part: None if m is None else float(over(m.error, limit).max(initial=0.0))
            for part, (m, limit) in pairs.items()
        }

    @property
    def beyond_worst_case(self) -> bool:
        """Whether no rounding at all explains the errors."""
        return any(x is not None and not x <= 1 for x in (self.worst_case_ratios or {}).values())

    def cell(self) -> dict[str, Any]:
        """The certificate's entry for this cell."""
        problem, ratios, o = self.problem, self.worst_case_ratios, self.outcome
        return {
            **header(self.case),
            "verdict": str(self.verdict),
            **reference_entry(self.yardstick),
            "output": None
            if self.output is None
            else self.output.figures(o.output_dtype, tokens=True, per_token=True),
            "state": None if self.state is None else self.state.figures(o.state_dtype, tokens=False),
            "worst_case": None
            if ratios is None
            else {part: None if ratio is None else number(ratio) for part, ratio in ratios.items()},
            "rules": dict(self.rules),
            "problem": None if problem is None else {"kind": problem.kind, "message": problem.message},
            "seconds": number(o.seconds),
        }


def judge(case: Case, outcome: Outcome, yardstick: Yardstick) -> Judgement:
    """Measure an outcome against the yardstick of its case."""
    y = yardstick
    output = state = None
    if outcome.output is not None:
        output = measure(outcome.output, y.output, y.output_tolerance, y.output_deviation)
    if outcome.final_state is not None:
        state = measure(outcome.final_state, y.state, y.state_tolerance, y.state_deviation)
    return Judgement(case, outcome, y, output, state)


def measure(computed: Array, reference: Array, tolerance: Array, deviation: Array) -> Measure:
    """Errors of ``computed``; a value that is not finite counts as infinitely wrong.

    Norms run over V for an output ``[B, T, HV, V]`` and over K and V for a state ``[B, HV, K, V]``, whose
    tolerance has one axis less.
    """
    axes = tuple(range(tolerance.ndim, computed.ndim))
    with np.errstate(invalid="ignore", over="ignore"):
        difference = computed - reference
        error = np.sqrt(np.square(difference).sum(axis=axes))
    error = np.where(np.isfinite(error), error, np.inf)
    return Measure(error, tolerance, deviation, reference, difference)


def header(case: Case) -> dict[str, Any]:
    """What identifies a cell."""
    return {
        "class": case.name,
        "shape": vars(case.shape),
        "seed": case.seed,
        "initial_state": case.initial_state is not None,
    }


def number(x: float) -> float | str:
    """Six significant digits, or ``"nan"``, ``"inf"``, ``"-inf"``: JSON has no other non-finite numbers."""
    x = float(x)
    return float(f"{x:.6g}") if np.isfinite(x) else str(x)


def over(error: Array, scale: Array) -> Array:
    """Ratios: 0 where there is no error, infinite where a scale of zero is missed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error == 0, 0.0, error / scale)


def _largest(array: Array) -> float:
    """The largest absolute value; infinite when one is not finite."""
    values = np.abs(array)
    return float(np.where(np.isfinite(values), values, np.inf).max(initial=0.0))


def _rms_ratio(difference: Array, reference: Array) -> float:
    if not np.isfinite(difference).all():
        return float("inf")
    below = float(np.sqrt(np.square(reference).sum()))
    above = float(np.sqrt(np.square(difference).sum()))
    return 0.0 if above == 0 else above / below if below else float("inf")
