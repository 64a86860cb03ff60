"""What each case should give under one convention: reference, tolerance and their bookkeeping."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.gradient.activations import of_made, passages, reach, through, widened, with_made
from verify.audit.gradient.factored import with_factors
from verify.audit.gradient.functional import Cotangent, cotangent
from verify.audit.gradient.judge import GradientYardstick, gradient_tolerances
from verify.audit.gradient.levels import gradients_at
from verify.audit.gradient.running import with_running_sums
from verify.audit.inputs.integers import inexact, is_integer_case
from verify.audit.judge import Yardstick
from verify.audit.reference.exact import exact_reference
from verify.audit.reference.levels import LEVELS, reference_at
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.bounds import FALSE_ALARM, tolerance
from verify.audit.tolerance.predicted.prediction import RUNS, Algorithm, predict, predict_gradients
from verify.audit.tolerance.predicted.stability import instability, without_excuse
from verify.audit.tolerance.worst_case.gradient.rigorous import worst_gradients
from verify.audit.tolerance.worst_case.rigorous import derived, worst_case
from verify.model.errors import unknown_name
from verify.numbers.formats import format_named


@dataclass(frozen=True)
class Bench:
    """Makes yardsticks.

    Args:
        convention: the contract of the kernel.
        comparisons: how many cases share the false-alarm probability.
        cache: folder of earlier predictions; None for none.
        reference: the level that judges all but integer cases, see `verify.audit.reference.levels`.
        runs: runs of the model per prediction.
        false_alarm: probability that a correct kernel misses any of the tolerances.

    Raises:
        RequestError: there is no such reference.
    """

    convention: Convention
    comparisons: int
    cache: Path | None = None
    reference: str = "float64"
    runs: int = RUNS
    false_alarm: float = FALSE_ALARM

    def __post_init__(self) -> None:
        if self.reference not in LEVELS:
            raise unknown_name("reference", self.reference, LEVELS)

    def yardstick(self, case: Case) -> Yardstick:
        """Exact results for an integer case, else those of the reference, within the derived tolerance."""
        return self.yardstick_of(self.convention.as_seen(case), case.dtype)

    def yardstick_of(self, seen: Case, dtype: str) -> Yardstick:
        """The same for what a function is asked for with inputs of ``dtype``."""
        algorithm = Algorithm.of(self.convention, dtype)
        if is_integer_case(seen) and algorithm.exact_on_integers:
            exact = exact_reference(seen)
            formats = format_named(algorithm.output_dtype), format_named(algorithm.compute_dtype)
            # A convention may ask for larger integers than were drawn: values times steps of Mamba-2.
            if inexact(seen, exact.output, exact.final_state, *formats) is None:
                zeros = np.zeros_like(exact.output_error), np.zeros_like(exact.state_error)
                return Yardstick("exact", exact.output, exact.final_state, *zeros, *zeros, zeros[0])
        reference = reference_at(seen, self.reference)
        # What follows forms exponents, and -inf has none.
        seen = seen.with_finite_gates()
        prediction = predict(seen, reference, algorithm, runs=self.runs, cache=self.cache)
        allow = partial(tolerance, seen, cells=self.comparisons, false_alarm=self.false_alarm)
        unstable = instability(seen, reference, algorithm, prediction, allow, self.cache)
        allowed = without_excuse(allow(prediction, reference, algorithm), unstable)
        return Yardstick(
            kind=reference.level,
            output=reference.output,
            state=reference.final_state,
            output_tolerance=allowed.output,
            state_tolerance=allowed.state,
            output_deviation=prediction.output,
            state_deviation=prediction.state,
            output_bound=reference.output_error,
            worst_case=worst_case(seen, reference, algorithm) if derived(seen.kind, algorithm) else None,
            unstable=unstable,
            note=reference.note,
            digits=reference.digits,
        )

    def functional(self, case: Case) -> Cotangent:
        """The functional that is differentiated."""
        return cotangent(
            case, self.convention.gradients == "output-and-state" and self.convention.returns_state
        )

    def gradient_yardstick(self, case: Case) -> GradientYardstick:
        """Gradients by the adjoint of the definition, within the derived tolerances."""
        seen, functional = self.convention.as_seen(case), self.functional(case)
        algorithm = Algorithm.of(self.convention, case.dtype)
        reference, inner = float64_reference(seen), gradients_at(seen, functional, self.reference)
        seen, finite = seen.with_finite_gates(), case.with_finite_gates()
        handed = self.convention.differentiated(finite)
        ways = passages(self.convention, case)
        gradients = through(inner, ways, handed)
        predicted = predict_gradients(
            seen,
            functional,
            with_made(gradients, inner, ways),
            algorithm,
            handed,
            runs=self.runs,
            cache=self.cache,
        )
        before = of_made(predicted, inner)
        after = with_factors(seen, inner, with_running_sums(seen, inner, before, algorithm), algorithm)
        prediction = widened(predicted, before, after, ways)
        allowed = gradient_tolerances(
            seen,
            functional,
            reference,
            gradients.errors,
            prediction,
            algorithm,
            reach(seen, inner, ways),
            cells=self.comparisons,
            false_alarm=self.false_alarm,
        )
        return GradientYardstick(
            functional,
            gradients.values,
            allowed,
            prediction.rows,
            kind=gradients.level,
            note=gradients.note,
            digits=gradients.digits,
            worst_case=worst_gradients(seen, functional, inner, algorithm),
        )
