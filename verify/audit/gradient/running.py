"""What subtracting running sums of gates adds to the rounding errors of the gates' gradients."""

import dataclasses

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.reference import Gradients
from verify.audit.tolerance.predicted.prediction import Algorithm, GradientPrediction
from verify.numbers.formats import format_named


def with_running_sums(
    case: Case, gradients: Gradients, prediction: GradientPrediction, algorithm: Algorithm
) -> GradientPrediction:
    """The prediction for a kernel whose exponents are differences G_i - G_j of running sums over a chunk.

    Or for a recurrent one that finds the gradients of gates as if they were, over the whole sequence.

    Our models add up the gradients of exactly those exponents that a gate is part of. A kernel that subtracts
    sums instead finds the gradient of G_i as q dq + k dk_read - k dk_write, which also holds the terms of all
    exponents that end at i, and adds these up from the end of the chunk: most of it cancels, and its rounding
    errors stay. Each of the three errs by u of itself and by the error of dq or dk times q or k, and each
    step of the sum by u of the gradient reached. Independent errors add in squares.
    """
    if case.g is None or algorithm.gate_sums == "segment":
        return prediction
    span = algorithm.chunk_size or max(case.shape.T, 1)
    u = float(format_named(algorithm.compute_dtype).unit_roundoff)
    per_head = case.kind.gate == "head"
    own = u * gradients.terms["subtracted"]
    own = own.sum(-1) if per_head else own
    step = u * np.abs(gradients.values["g"])
    for field in ("q", "k", *(name for name in ("a", "b") if name in case.arrays())):
        size = np.abs(case.spread(field))
        deviation = prediction.rows[field]
        if field in case.kind.shared:
            deviation = np.repeat(deviation, case.shape.HV // case.shape.H, axis=2)
        own = own + (np.linalg.norm(size, axis=-1) * deviation if per_head else size * deviation[..., None])
    squares = np.square(own) + np.square(step)
    total = np.concatenate([_from_here(part) for part in _chunks(squares, span)], axis=1)
    added = total.sum(-1) if case.kind.gate == "channel" else total
    rows = dict(prediction.rows)
    rows["g"] = np.sqrt(np.square(rows["g"]) + added)
    return dataclasses.replace(prediction, rows=rows)


def _chunks(array: Array, size: int) -> list[Array]:
    return [array[:, start : start + size] for start in range(0, max(array.shape[1], 1), size)]


def _from_here(array: Array) -> Array:
    """Sums over tokens from each to the last."""
    return np.asarray(array[:, ::-1].cumsum(axis=1)[:, ::-1])
