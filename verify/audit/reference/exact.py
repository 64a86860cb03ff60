"""The definition in exact rationals, where every exponential is rational."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.audit.case import Array, Case
from verify.audit.inputs.counted import VANISHES, attended
from verify.audit.reference.definition import evaluate
from verify.audit.reference.results import Compute, Found, Reference
from verify.model.errors import RequestError
from verify.numbers import system


def rational(compute: Compute) -> Found:
    """Rationals; their errors in float64 are those of rounding them and nothing else.

    Raises:
        RequestError: an exponential is not rational: a gate other than 0 and -inf, two logits that differ.
    """
    try:
        return Found("rational", compute(system("exact")), near)
    except RequestError as problem:
        # The rest of the sentence is advice to who writes a definition.
        raise RequestError(f"irrational exponentials: {str(problem).partition(';')[0]}") from None


def exact_reference(case: Case) -> Reference:
    """Where every exponential is 1, or 0 in every format, and every result is a value of float64.

    A gate of at most -800 counts as a decay of 0: e^-800 < 10^-347 moves no integer to another value of any
    format. The errors returned are exactly 0.

    Raises:
        RequestError: another gate, or an exact result that float64 cannot hold.
    """
    s = case.shape
    nothing = np.zeros((s.B, s.T, s.HV)), np.zeros((s.B, s.HV))
    if not case.kind.stateful:
        return Reference(_averages(case), np.zeros((s.B, s.HV, 0, 0)), *nothing, level="exact")
    gates = np.unique(case.log_decay)
    if ((gates != 0) & (gates > VANISHES)).any():
        raise RequestError(
            f"case {case.name!r} has the gate {gates[gates > VANISHES][0]}; "
            f"exact rationals need gates of 0 or at most {VANISHES}"
        )
    output, state = evaluate(case, system("exact"), vanishing=VANISHES)
    return Reference(_exactly(output, case), _exactly(state, case), *nothing, level="exact")


def _averages(case: Case) -> Array:
    """Softmax attention whose weights are 0 or equal: sums of values, divided by their number."""
    members = attended(case)
    counts = members.sum(-1)
    sums = np.einsum("bhtj,bjhv->bthv", members.astype(np.float64), case.spread("v"))
    exact = np.empty(sums.shape, dtype=object)
    for index, total in np.ndenumerate(sums):
        b, t, h, _ = index
        exact[index] = system("exact").number(float(total)) / int(counts[b, h, t])
    return _exactly(exact, case)


def _exactly(values: NDArray[Any], case: Case) -> Array:
    """Rationals as float64, when that loses nothing."""
    flat = np.empty(values.size)
    for i, x in enumerate(values.flat):
        flat[i], error = near(x)
        if error:
            raise RequestError(f"case {case.name!r}: the exact result {x} is not a value of float64")
    return flat.reshape(values.shape)


def near(x: Any) -> tuple[float, float]:
    """The nearest float64, and how far it is."""
    try:
        value = int(x.p) / int(x.q)
    except OverflowError:
        return math.inf, math.inf
    apart = abs(x - system("exact").number(value))
    return value, 0.0 if apart == 0 else max(int(apart.p) / int(apart.q), math.ulp(0.0))
