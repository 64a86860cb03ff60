"""The exponential in float64 with a proven error, whatever the library's exp is worth."""

import numpy as np

from verify.audit.case import Array
from verify.model.errors import RequestError

# The first guess at NumPy's relative error, in units of 2^-53; doubled until balls confirm it.
_FIRST_GUESS = 2.0
_PRECISION = 96


def enclosed_exp(g: Array) -> tuple[Array, Array]:
    """(a, error) with |a - e^g| <= error for every gate: NumPy's exp, each distinct gate checked by a ball.

    Where e^g is below the smallest normal number the error is at least that of the gradual underflow.

    Raises:
        RequestError: a gate is infinite or NaN.
    """
    from flint import arb, ctx

    if not np.isfinite(g).all():
        raise RequestError(f"the gate {g[~np.isfinite(g)][0]} has no exact decay; give finite gates")
    distinct, where = np.unique(g, return_inverse=True)
    values = np.exp(distinct)
    errors = np.empty_like(values)
    with ctx.workprec(_PRECISION):
        for i, (gate, value) in enumerate(zip(distinct.tolist(), values.tolist(), strict=True)):
            deviation = abs(arb(gate).exp() - arb(value))
            # e^-800 < 2^-1074: an exponential that underflowed to 0 has an error below the smallest number.
            bound = max(_FIRST_GUESS * 2.0**-53 * value, 2.0**-1074)
            while not deviation <= bound:
                bound *= 2
            errors[i] = bound
    return values[where].reshape(g.shape), errors[where].reshape(g.shape)
