"""Reference gradients at every level: the adjoint in float64, in mpmath, in balls, in exact rationals."""

import dataclasses
from typing import Any

from numpy.typing import NDArray

from verify.audit.case import Case
from verify.audit.gradient.evaluated import evaluate
from verify.audit.gradient.functional import Cotangent, row_axes
from verify.audit.gradient.reference import Gradients, float64_gradients
from verify.audit.reference.levels import find, size

_PASSES = 4
"""An adjoint updates about four times the numbers that its recurrence does."""


def gradients_at(case: Case, functional: Cotangent, level: str) -> Gradients:
    """The gradients of a level, or of the one that stands in for it (`verify.audit.reference.levels.find`).

    Their ``terms`` are float64's at every level: they only say how large terms are.

    Raises:
        RequestError: there is no such level, or a gate is not a number.
    """

    def compute(numbers: Any) -> dict[str, NDArray[Any]]:
        return evaluate(case, functional, numbers)

    gradients = float64_gradients(case, functional)
    found, note = find(compute, _PASSES * size(case), level)
    if found is None:
        return dataclasses.replace(gradients, note=note)
    rounded = {field: found.rounded(field, row_axes(case, field)) for field in gradients.values}
    return dataclasses.replace(
        gradients,
        values={field: values for field, (values, _) in rounded.items()},
        errors={field: errors for field, (_, errors) in rounded.items()},
        level=found.level,
        note=note,
        digits=found.digits,
    )
