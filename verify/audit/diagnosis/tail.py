"""Whether the final state is wrong just when the length is not a multiple of the chunk."""

import math
from collections.abc import Sequence

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.diagnosis.variants import recurrence
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, measure
from verify.audit.laboratory import Finding, Laboratory

_LENGTHS = (8, 12, 16, 24, 32, 40, 48, 63, 64, 65, 96, 100, 128)


def explain_tail(lab: Laboratory, wrong: Sequence[Judgement]) -> Finding | None:
    """The chunk size from the lengths that fail, and what the state of a partial chunk was made of."""
    if (
        any(j.output is not None and j.output.failed for j in wrong)
        or lab.convention.length_multiple > 1
        or not lab.convention.kind.gate
    ):
        return None
    probed = [lab.judge(probe(lab.convention, lab.dtype, n, gate=(-0.2, -0.01))) for n in _LENGTHS]
    if any(j.state is None or j.nonfinite or j.output is None or j.output.failed for j in probed):
        return None
    right = {j.case.shape.T for j in probed if not j.failed}
    chunk = math.gcd(*right) if right else 0
    failing = [j for j in probed if j.failed]
    if chunk < 2 or not failing or any(j.case.shape.T % chunk == 0 for j in failing):
        return None
    pattern = (
        f"the output is right and the final state wrong, at T = {_listed(j.case.shape.T for j in failing)}; "
        f"both are right at T = {_listed(sorted(right))}: multiples of C = {chunk}"
    )
    for what, made in _STATES.items():
        fit = max(_distance(j, made(j.case, chunk)) for j in failing)
        if fit <= 1:
            away = max(j.state.worst_ratio for j in failing if j.state is not None)
            return Finding(
                "tail chunk read at the pad",
                f"when T is not a multiple of C = {chunk}, {what}",
                f"{pattern}; at those lengths the state is within {fit:.2g} of the tolerance around that "
                f"hypothesis and up to {away:.3g} tolerances from the definition",
            )
    return None


def _undecayed(case: Case, chunk: int) -> Array:
    """The running gate read at a pad row, where it is 0: e^(0 - G_j) and e^0 stand for the tail's decay."""
    _, state = recurrence(case)
    start = case.shape.T // chunk * chunk
    return np.asarray(state * np.exp(-case.log_decay[:, start:].sum(axis=1)[..., None]))


def _without_tail(case: Case, chunk: int) -> Array:
    return recurrence(case.slice(0, case.shape.T // chunk * chunk, case.initial_state))[1]


_STATES = {
    "the decay of the last, partial chunk is read at a pad row, where the running gate is 0": _undecayed,
    "the final state is that of the last whole chunk": _without_tail,
}


def _distance(judgement: Judgement, state: Array) -> float:
    computed, y = judgement.outcome.final_state, judgement.yardstick
    assert computed is not None
    growth = max(1.0, float(np.abs(state).max() / np.abs(y.state).max()))
    return measure(computed, state, y.state_tolerance * growth, y.state_deviation).worst_ratio


def _listed(lengths: object) -> str:
    return ", ".join(map(str, lengths))  # type: ignore[call-overload]
