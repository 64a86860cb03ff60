"""Whether the recurrent state is kept in a format narrower than the convention's."""

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


def explain_state_format(lab: Laboratory, wrong: Sequence[Judgement]) -> Finding | None:
    """The format and the period of rounding that leave least of the error, if that is little."""
    cells = sorted((j for j in wrong if j.outcome.final_state is not None), key=lambda j: j.case.v.size)
    cells = [j for j in cells if j.yardstick.kind != "exact"][:_MOST_CELLS]
    for name in _FORMATS:
        if not cells or lab.convention.resolve(lab.convention.state_dtype, lab.dtype) == name:
            continue
        states = [s for j in cells if (s := j.outcome.final_state) is not None]
        if not all(is_representable_array(format_named(name), s).all() for s in states):
            continue
        shares = {period: max(_share_left(j, name, period) for j in cells) for period in _PERIODS}
        period = min(shares, key=lambda p: shares[p])
        if shares[period] <= _LARGEST_SHARE:
            count = sum(s.size for s in states)
            when = "every token" if period == 1 else f"every {period} tokens"
            return Finding(
                f"state kept in {name}",
                f"the state is rounded to {name} after {when}",
                f"all {count} numbers of {len(cells)} final states are {name} values; a float64 recurrence "
                f"that rounds the state to {name} after {when} leaves {shares[period]:.2g} of the error "
                f"(root mean square; without the rounding: 1)",
            )
    return None


def _share_left(judgement: Judgement, name: str, period: int) -> float:
    """Distance from the model over distance from the definition, over output and state."""
    output, state = recurrence(judgement.case, Step(state_format=name, rounding_period=period))
    y, o = judgement.yardstick, judgement.outcome
    assert o.output is not None
    assert o.final_state is not None
    left = _norm(o.output - output) + _norm(o.final_state - state)
    return left / (_norm(o.output - y.output) + _norm(o.final_state - y.state))


def _norm(array: Array) -> float:
    return float(np.sqrt(np.square(array).sum()))
