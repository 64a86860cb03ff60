"""What decay a kernel makes of a gate, measured on a state that nothing else changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Case
from verify.audit.diagnosis.fitting import MOST_FAILING, MOST_PASSING, distance, small, worst_ratio
from verify.audit.diagnosis.variants import recurrence
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, judge
from verify.audit.laboratory import Finding, Laboratory

_GATES = (-1e-3, -0.03, -0.2, -1.0, -4.0, -8.0)
_ALIKE = 1e-5
"""Largest relative difference of two measured decays that are one number; float32 errs by 1e-7."""
_DIGITS = (2, 3, 4, 6)


@dataclass(frozen=True)
class Reading:
    """Gates brought between ``low`` and ``high`` before they are used."""

    reason: str
    detail: str
    low: float
    high: float

    def of(self, case: Case) -> Case | None:
        """The case that the kernel then computes; None where it is the same one."""
        if case.g is None:
            return None
        gates = np.clip(case.g, self.low, self.high)
        return None if np.array_equal(gates, case.g) else case.replace(g=gates, gate_dtype="float64")


def explain_gate_reading(
    lab: Laboratory, wrong: Sequence[Judgement], passing: Sequence[Judgement]
) -> Finding | None:
    """Clamps and constants in place of gates, with the value that was measured, where they fit all cells."""
    failing, agreeing = small(wrong, MOST_FAILING), small(passing, MOST_PASSING)
    for reading in readings(measured_decays(lab)):
        fits = [_fit(lab, reading, j) for j in failing]
        others = [fit for j in agreeing if (fit := _fit(lab, reading, j)) is not None]
        found = [fit for fit in fits if fit is not None]
        if found and len(found) == len(fits) and max([*found, *others]) <= 1:
            return Finding(
                reading.reason,
                reading.detail,
                f"measured on a state that nothing else changes; on {len(failing)} failing cells the result "
                f"is within {max(found):.2g} of the tolerance of the definition with these gates, and up to "
                f"{max(map(worst_ratio, failing)):.3g} tolerances from it with those handed over",
            )
    return None


def _fit(lab: Laboratory, reading: Reading, judgement: Judgement) -> float | None:
    """How far the kernel is from the definition on misread gates, in tolerances; None where that is itself.

    Growth has no tolerance of its own: that of no decay, in proportion to the larger numbers, stands for it.
    """
    case = reading.of(judgement.case)
    if case is None or case.g is None:
        return None
    bounded = case.replace(g=np.minimum(case.g, 0.0))
    near = judge(bounded, judgement.outcome, lab.bench.yardstick(bounded))
    return distance(near, recurrence(lab.convention.as_seen(case)))


def readings(decays: Mapping[float, float]) -> Iterator[Reading]:
    """What the measured decays look like; none of them where there are none."""
    if not decays:
        return
    every = list(decays.values())
    if _one(every):
        for value in _candidates(every[0]):
            what = f"the log decay is {value:.6g} for every gate"
            yield Reading("decay does not depend on the gate", what, value, value)
        return
    if _one(every[:2]):
        for value in _candidates(every[0]):
            what = f"gates above {value:.6g} are read as {value:.6g}"
            yield Reading("gates clamped from above", what, -np.inf, value)
    if _one(every[-2:]):
        for value in _candidates(every[-1]):
            what = f"gates below {value:.6g} are read as {value:.6g}"
            yield Reading("gates clamped from below", what, value, np.inf)


def measured_decays(lab: Laboratory) -> dict[float, float]:
    """By gate: the log decay of a state over one token that writes nothing; empty if not measurable."""
    c = lab.convention
    if not (c.kind.gate and c.takes_initial_state and c.returns_state):
        return {}
    found = {}
    for gate in _GATES:
        case = probe(c, lab.dtype, lab.length(1), gate=gate, beta=0.0, initial_state=True)
        case = case.replace(v=np.zeros_like(case.v))
        state = lab.run(case).final_state
        if state is None or case.initial_state is None:
            return {}
        with np.errstate(divide="ignore", invalid="ignore"):
            decays = np.log(state / case.initial_state) / case.shape.T
        if not np.isfinite(decays).all():
            return {}
        found[gate] = float(np.median(decays))
    return found


def _one(decays: list[float]) -> bool:
    """Whether measured decays are one and the same number."""
    return max(decays) - min(decays) <= _ALIKE * max(map(abs, decays))


def _candidates(value: float) -> list[float]:
    """A measured number, that of the float32 number nearest to its factor, and short decimals near it."""
    factor = float(np.log(np.float64(np.float32(np.exp(value)))))
    short = [float(f"{value:.{digits}g}") for digits in _DIGITS]
    near = [x for x in (*short, factor) if abs(x - value) <= _ALIKE * abs(value)]
    return list(dict.fromkeys([*near, value]))
