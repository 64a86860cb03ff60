"""Where an algorithm's model predicts a useless result, that is no excuse: the recurrence sets the tolerance.

A row is useless when the predicted deviation is larger than the row itself, while the recurrent form, in the
same formats, is certain to give a useful one: its tolerance, which a correct kernel exceeds with the
certificate's false-alarm probability alone, is at most the row. There the recurrent form's tolerance replaces
the declared form's. A kernel whose result is good all the same is not flagged; one that loses the row is, and
the reason is its algorithm. Where the recurrence promises no useful row either, the input is what is hard.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verify.audit.case import Array, Case
from verify.audit.reference.results import Reference
from verify.audit.tolerance.predicted.bounds import Tolerance
from verify.audit.tolerance.predicted.prediction import Algorithm, Prediction, predict

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Instability:
    """Where a declared form is predicted to lose results that the recurrence keeps.

    Args:
        output: which rows, ``[B, T, HV]``.
        state: which states, ``[B, HV]``.
        predicted: deviation over size of the output rows, ``[B, T, HV]``; infinite for a row of zeros.
        stable: the recurrent form's tolerance.
    """

    output: Mask
    state: Mask
    predicted: Array
    stable: Tolerance


def recurrence(case: Case, algorithm: Algorithm) -> Algorithm | None:
    """The token-by-token form in the same formats; None where the mechanism has none, or this is it."""
    if algorithm.form == "recurrent" or "recurrent" not in case.kind.forms:
        return None
    return dataclasses.replace(
        algorithm,
        form="recurrent",
        chunk_size=None,
        gate_sums="segment",
        corrections="solved",
        inverse="substitution",
    )


def instability(
    case: Case,
    reference: Reference,
    algorithm: Algorithm,
    prediction: Prediction,
    allow: Callable[[Prediction, Reference, Algorithm], Tolerance],
    cache: Path | None = None,
) -> Instability | None:
    """Where the declared form is useless and the recurrence is not; None where that is nowhere.

    Args:
        case: the input.
        reference: its exact result.
        algorithm: the declared form.
        prediction: its predicted deviation.
        allow: the tolerance that a prediction gives this case.
        cache: folder of earlier predictions.
    """
    stable = recurrence(case, algorithm)
    rows = np.sqrt(np.square(reference.output).sum(-1))
    states = np.sqrt(np.square(reference.final_state).sum((-1, -2)))
    lost = prediction.output > rows, prediction.state > states
    if stable is None or not (lost[0].any() or lost[1].any()):
        return None
    kept = predict(case, reference, stable, runs=prediction.runs, cache=cache)
    allowed = allow(kept, reference, stable)
    useless = lost[0] & (allowed.output <= rows), lost[1] & (allowed.state <= states)
    if not (useless[0].any() or useless[1].any()):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(prediction.output == 0, 0.0, prediction.output / rows)
    return Instability(*useless, share, allowed)


def without_excuse(declared: Tolerance, unstable: Instability | None) -> Tolerance:
    """The tolerance with the recurrence's where the declared form is useless."""
    if unstable is None:
        return declared
    return Tolerance(
        output=np.where(unstable.output, unstable.stable.output, declared.output),
        state=np.where(unstable.state, unstable.stable.state, declared.state),
        factor=declared.factor,
    )
