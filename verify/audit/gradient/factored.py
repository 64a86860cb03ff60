"""What storing the factors U and W of a chunk adds to the rounding errors of the gradients of beta."""

import dataclasses

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.reference import Gradients
from verify.audit.reference.recurrence import Setting, steps
from verify.audit.tolerance.predicted.prediction import Algorithm, GradientPrediction
from verify.numbers.formats import format_named


def with_factors(
    case: Case, gradients: Gradients, prediction: GradientPrediction, algorithm: Algorithm
) -> GradientPrediction:
    """The prediction for a kernel that writes U - W S: U = T B V, W = T B K, S the state before the chunk.

    The gradient of beta_i is x_i . (v_i - r_i), where x_i is that of the write and r_i what is read. Our
    models solve for the difference, whose errors are in proportion to itself. Going back through U, W and T
    instead finds four terms apart, x_i times v_i, what S gives at k_i, and what the chunk's earlier rows of U
    and of W S give there, which cancel where the state predicts the value. Each has its own copy of x_i, with
    an error like that of the gradient of v_i, and errs by u of itself. Independent errors add in squares.
    """
    if case.beta is None or algorithm.corrections != "factored" or algorithm.chunk_size is None:
        return prediction
    u = float(format_named(algorithm.compute_dtype).unit_roundoff)
    x = np.linalg.norm(gradients.terms["written"], axis=-1)
    beta = case.strength
    error = np.divide(prediction.rows["v"], beta, out=np.zeros_like(x), where=beta > 0)
    added = (np.square(error) + np.square(u * x)) * _squares(case, algorithm.chunk_size)
    rows = {**prediction.rows, "beta": np.sqrt(np.square(prediction.rows["beta"]) + added)}
    return dataclasses.replace(prediction, rows=rows)


def _squares(case: Case, chunk: int) -> Array:
    """Sums of the squared lengths of the four terms' second factors, ``[B, T, HV]``."""
    tokens = list(steps(case, Setting.of(case)))
    total = np.zeros(case.strength.shape)
    for first in range(0, case.shape.T, chunk):
        part = case.slice(first, min(first + chunk, case.shape.T), None)
        c = Setting.of(part)
        start = tokens[first - 1].after if first else case.initial_state
        carried = np.zeros_like(tokens[0].after) if start is None else start
        for t, alone in enumerate(steps(part, c)):
            carried = c.alpha[:, t, ..., None] * carried
            read = (c.k[:, t, :, None, :] @ carried)[..., 0, :]
            value, miss = part.v[:, t], tokens[first + t].miss
            factors = (value, read, value - alone.miss, read - (alone.miss - miss))
            total[:, first + t] = sum(np.square(factor).sum(-1) for factor in factors)
    return total
