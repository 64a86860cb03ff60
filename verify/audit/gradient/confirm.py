"""Confirms reference gradients and their bounds by balls, from the adjoint in another number system."""

from typing import Any

import numpy as np

from verify.audit.case import Case
from verify.audit.gradient.evaluated import evaluate
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.reference import Gradients
from verify.audit.reference.confirm import Confirmation, compare
from verify.numbers import system


def confirm(case: Case, functional: Cotangent, gradients: Gradients, precision: int = 128) -> Confirmation:
    """Compare every row of every gradient with balls."""
    from flint import ctx

    with ctx.workprec(precision):
        exact = ball_gradients(case, functional, precision)
        rows = []
        for field, values in gradients.values.items():
            for index in np.ndindex(gradients.errors[field].shape):
                balls = np.atleast_1d(np.asarray(exact[field][index], dtype=object)).ravel()
                approximate = np.atleast_1d(values[index]).ravel().tolist()
                rows.append((list(balls), approximate, float(gradients.errors[field][index])))
        return compare(rows)


def ball_gradients(case: Case, functional: Cotangent, precision: int = 128) -> dict[str, Any]:
    """Balls that contain the exact gradients, by field, in arrays of the inputs' shapes."""
    from flint import ctx

    # Heads that share an input are added outside the number system, at the precision of the process.
    with ctx.workprec(precision):
        return evaluate(case, functional, system("ball", precision=precision))
