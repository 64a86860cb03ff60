"""What each case should give under one convention: reference, tolerance and their bookkeeping."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verify.audit.case import Case
from verify.audit.convention import Convention
from verify.audit.gradient.factored import with_factors
from verify.audit.gradient.functional import Cotangent, cotangent
from verify.audit.gradient.judge import GradientYardstick, gradient_tolerances
from verify.audit.gradient.reference import float64_gradients
from verify.audit.gradient.running import with_running_sums
from verify.audit.inputs.integers import check_exact, is_integer_case
from verify.audit.judge import Yardstick
from verify.audit.reference.results import exact_reference, float64_reference
from verify.audit.tolerance.bounds import FALSE_ALARM, tolerance
from verify.audit.tolerance.prediction import RUNS, Algorithm, predict, predict_gradients
from verify.audit.tolerance.rigorous import derived, worst_case
from verify.numbers.formats import format_named


@dataclass(frozen=True)
class Bench:
    """Makes yardsticks.

    Args:
        convention: the contract of the kernel.
        comparisons: how many cases share the false-alarm probability.
        cache: folder of earlier predictions; None for none.
        runs: runs of the model per prediction.
        false_alarm: probability that a correct kernel misses any of the tolerances.
    """

    convention: Convention
    comparisons: int
    cache: Path | None = None
    runs: int = RUNS
    false_alarm: float = FALSE_ALARM

    def yardstick(self, case: Case) -> Yardstick:
        """Exact results for an integer case, else float64 ones within the derived tolerance."""
        seen = self.convention.as_seen(case)
        algorithm = Algorithm.of(self.convention, case.dtype)
        if is_integer_case(seen):
            exact = exact_reference(seen)
            formats = format_named(algorithm.output_dtype), format_named(algorithm.compute_dtype)
            check_exact(seen, exact.output, exact.final_state, *formats)
            zeros = np.zeros_like(exact.output_error), np.zeros_like(exact.state_error)
            return Yardstick("exact", exact.output, exact.final_state, *zeros, *zeros, zeros[0])
        reference = float64_reference(seen)
        prediction = predict(seen, reference, algorithm, runs=self.runs, cache=self.cache)
        allowed = tolerance(
            seen, prediction, reference, algorithm, cells=self.comparisons, false_alarm=self.false_alarm
        )
        return Yardstick(
            kind="float64",
            output=reference.output,
            state=reference.final_state,
            output_tolerance=allowed.output,
            state_tolerance=allowed.state,
            output_deviation=prediction.output,
            state_deviation=prediction.state,
            output_bound=reference.output_error,
            worst_case=worst_case(seen, reference, algorithm) if derived(seen.kind, algorithm) else None,
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
        reference, gradients = float64_reference(seen), float64_gradients(seen, functional)
        prediction = predict_gradients(
            seen, functional, gradients, algorithm, runs=self.runs, cache=self.cache
        )
        prediction = with_running_sums(seen, gradients, prediction, algorithm)
        prediction = with_factors(seen, gradients, prediction, algorithm)
        allowed = gradient_tolerances(
            seen,
            functional,
            reference,
            gradients.errors,
            prediction,
            algorithm,
            cells=self.comparisons,
            false_alarm=self.false_alarm,
        )
        return GradientYardstick(functional, gradients.values, allowed, prediction.rows)
