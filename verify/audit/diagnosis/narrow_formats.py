"""Whether the state, or what it predicts for a value, passes through a narrower format than declared."""

from collections.abc import Sequence

import numpy as np

from verify.audit.case import Array
from verify.audit.diagnosis.variants import Step, recurrence
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory
from verify.numbers.formats import format_named, is_representable_array

_FORMATS = ("bfloat16", "float16")
_PERIODS = (1, 16, 32, 64)
_MOST_CELLS = 4
_LARGEST_SHARE = 0.1
"""Of the error, in the root mean square: what may remain when the hypothesis is true. A few roundings fall to
the other side because the kernel's float32 and this model's float64 differ before them."""


def explain_narrow_format(lab: Laboratory, wrong: Sequence[Judgement]) -> Finding | None:
    """The format, and how often it rounds, that leave least of the error, if that is little."""
    cells = sorted((j for j in wrong if j.outcome.final_state is not None), key=lambda j: j.case.v.size)
    cells = [j for j in cells if j.yardstick.kind != "exact"][:_MOST_CELLS]
    if not cells:
        return None
    for name in _FORMATS:
        if found := _kept_state(lab, name, cells) or _prediction(lab, name, cells):
            return found
    return None


def _kept_state(lab: Laboratory, name: str, cells: Sequence[Judgement]) -> Finding | None:
    states = [s for j in cells if (s := j.outcome.final_state) is not None]
    if lab.convention.resolve(lab.convention.state_dtype, lab.dtype) == name:
        return None
    if not all(is_representable_array(format_named(name), s).all() for s in states):
        return None
    steps = {period: Step(state_format=name, rounding_period=period) for period in _PERIODS}
    shares = {period: max(_share_left(j, step) for j in cells) for period, step in steps.items()}
    period = min(shares, key=lambda p: shares[p])
    if shares[period] > _LARGEST_SHARE:
        return None
    count = sum(s.size for s in states)
    when = "every token" if period == 1 else f"every {period} tokens"
    return Finding(
        f"state kept in {name}",
        f"the state is rounded to {name} after {when}",
        f"all {count} numbers of {len(cells)} final states are {name} values; a float64 recurrence "
        f"that rounds the state to {name} after {when} leaves {shares[period]:.2g} of the error "
        f"(root mean square; without the rounding: 1)",
    )


def _prediction(lab: Laboratory, name: str, cells: Sequence[Judgement]) -> Finding | None:
    """What the state holds at the key, rounded before it is subtracted from the value."""
    if not lab.convention.kind.erases:
        return None
    share = max(_share_left(j, Step(held_format=name), outputs=False) for j in cells)
    if share > _LARGEST_SHARE:
        return None
    return Finding(
        f"prediction rounded to {name} before v − Sᵀk",
        f"what the state holds at the key is rounded to {name} and then subtracted from the value: where the "
        f"two are close, the difference is the rounding error; subtract in the format of the state",
        f"a float64 recurrence with that one rounding leaves {share:.2g} of the error of {len(cells)} final "
        f"states (root mean square; without the rounding: 1)",
    )


def _share_left(judgement: Judgement, step: Step, outputs: bool = True) -> float:
    """Distance from the model over distance from the definition, over the state and, if asked, the output.

    An output is stored in the format of the call, which may round more than what is looked for.
    """
    output, state = recurrence(judgement.case, step)
    y, o = judgement.yardstick, judgement.outcome
    assert o.output is not None
    assert o.final_state is not None
    left, away = _norm(o.final_state - state), _norm(o.final_state - y.state)
    if outputs:
        left, away = left + _norm(o.output - output), away + _norm(o.output - y.output)
    return left / away if away else 1.0


def _norm(array: Array) -> float:
    return float(np.sqrt(np.square(array).sum()))
