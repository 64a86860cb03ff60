"""Names the operation by which a declared algorithm loses results that the recurrence keeps."""

from collections.abc import Sequence

import numpy as np

from verify.audit.diagnosis.fitting import measures
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.predicted.sensitivity import causes
from verify.audit.tolerance.predicted.stability import Instability

REASON = "unstable algorithm"
_NAMED = 3


def loses(judgement: Judgement) -> bool:
    """Whether a kernel exceeds tolerances only where its declared algorithm is predicted to lose results."""
    unstable = judgement.yardstick.unstable
    if unstable is None:
        return False
    outside = [
        (measure.ratio > 1) & ~rows
        for measure, rows in zip(measures(judgement), (unstable.output, unstable.state), strict=True)
        if measure is not None
    ]
    return judgement.failed and not any(rows.any() for rows in outside)


def explain_instability(lab: Laboratory, lost: Sequence[Judgement]) -> Finding:
    """The operation whose rounding alone moves the worst row of the smallest such input most."""
    with_rows = [j for j in lost if j.yardstick.unstable is not None and j.yardstick.unstable.output.any()]
    classes = ", ".join(dict.fromkeys(j.case.name for j in lost))
    algorithm = Algorithm.of(lab.convention, lab.dtype)
    form = f"the {algorithm.form} form with inverse by {algorithm.inverse} in {algorithm.model_dtype}"
    if not with_rows:
        about = f"the model of {form} predicts states with errors larger than the states"
        return Finding(REASON, about, f"{len(lost)} inputs of class {classes}; the recurrence keeps them")
    judged = min(with_rows, key=lambda j: j.case.k.size * j.case.v.size)
    unstable = judged.yardstick.unstable
    assert unstable is not None
    row = _worst(unstable)
    seen = lab.convention.as_seen(judged.case)
    found = causes(seen, float64_reference(seen), algorithm, row)
    size = float(np.sqrt(np.square(judged.yardstick.output[row]).sum()))
    alone = "; ".join(f"{c.site}: {_share(c.deviation, size)}" for c in found[:_NAMED])
    first = found[0]
    b, t, h = row
    return Finding(
        REASON,
        f"the model of {form} predicts outputs with errors larger than the outputs, where the recurrence in "
        f"the same formats keeps them; the rounding of {first.site}, call {first.call} of {first.calls}, "
        "does most of it",
        f"{len(lost)} inputs of class {classes}; at T = {judged.case.shape.T}, b = {b}, t = {t}, h = {h} the "
        f"predicted error is {_share(unstable.predicted[row] * size, size)} of the output; each rounded "
        f"alone, the others exact: {alone}",
    )


def _worst(unstable: Instability) -> tuple[int, int, int]:
    ratio = np.where(unstable.output, unstable.predicted, 0.0)
    b, t, h = (int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    return b, t, h


def _share(error: float, size: float) -> str:
    return f"{error / size:.2g} times the size" if size else f"{error:.2g} beside an output of 0"
