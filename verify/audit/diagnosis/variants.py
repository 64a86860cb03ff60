"""Plausible wrong gated delta rules, in float64: the hypotheses of a diagnosis.

Each variant is a whole recurrence, or the right recurrence on inputs misread in one way. A kernel that
matches a variant where it misses the definition has that fault.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.numbers.formats import format_named, round_array

Result = tuple[Array, Array]
"""Outputs ``[B, T, HV, V]`` and final state ``[B, HV, K, V]``."""


@dataclass(frozen=True)
class Variant:
    """One wrong kernel.

    Args:
        reason: the words of the finding.
        detail: what such a kernel does, in one sentence.
        run: what it gives for a case; None where the case cannot tell it from the definition or it does not
            apply.
    """

    reason: str
    detail: str
    run: Callable[[Case], Result | None]


@dataclass(frozen=True)
class Step:
    """How one token is handled; the defaults are the definition, in the order decay, erase, write, read.

    Args:
        erase_reads: the state the erased value is read from, ``"decayed"`` or ``"undecayed"``.
        decay: ``"first"``, ``"between"`` erase and write, or ``"last"``, after the write.
        erases: False for a rule that only adds.
        reads: the state the output is read from: ``"written"``, ``"decayed"`` or ``"previous"``.
        state_format: float format the state is rounded to after every ``rounding_period`` tokens and last.
    """

    erase_reads: str = "decayed"
    decay: str = "first"
    erases: bool = True
    reads: str = "written"
    state_format: str | None = None
    rounding_period: int = 1


def recurrence(case: Case, step: Step | None = None) -> Result:
    """All tokens of a case in float64, by ``step`` (default: the definition)."""
    step = step or Step()
    s = case.shape
    query, key = (np.repeat(a, s.HV // s.H, axis=2) for a in (case.q * case.scale, case.k))
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    gates = case.g if case.mechanism == "kda" else case.g[..., None]
    output = np.empty((s.B, s.T, s.HV, s.V))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        decays = np.exp(gates)
        for t in range(s.T):
            written, read = _token(
                step, state, decays[:, t, :, :, None], key[:, t], case.v[:, t], case.beta[:, t]
            )
            if step.state_format is not None and ((t + 1) % step.rounding_period == 0 or t + 1 == s.T):
                written = round_array(format_named(step.state_format), written)
            output[:, t] = np.einsum("bhkv,bhk->bhv", written if read is None else read, query[:, t])
            state = written
    return output, state


def _token(
    step: Step, state: Array, decay: Array, key: Array, value: Array, beta: Array
) -> tuple[Array, Array | None]:
    """The state after one token, and the state its output is read from when that is another one."""
    decayed = decay * state
    source = decayed if step.erase_reads == "decayed" and step.decay == "first" else state
    held = np.einsum("bhkv,bhk->bhv", source, key) if step.erases else np.zeros_like(value)
    column = (beta[..., None] * key)[..., None]
    if step.decay == "first":
        written = decayed + column * (value - held)[..., None, :]
    elif step.decay == "between":
        written = decay * (state - column * held[..., None, :]) + column * value[..., None, :]
    else:
        written = decay * (state + column * (value - held)[..., None, :])
    return written, {"written": None, "decayed": decayed, "previous": state}[step.reads]


def _by(step: Step) -> Callable[[Case], Result | None]:
    return lambda case: recurrence(case, step)


def _on(change: Callable[[Case], Case | None]) -> Callable[[Case], Result | None]:
    def run(case: Case) -> Result | None:
        misread = change(case)
        return None if misread is None else recurrence(misread)

    return run


def _gate(factor: float) -> Callable[[Case], Case | None]:
    return lambda case: case.replace(g=case.g * factor, gate_dtype="float64")


def _tiled(case: Case) -> Case | None:
    """Value head hv on query/key head hv % H instead of hv // (HV // H)."""
    s = case.shape
    if s.H in (1, s.HV):
        return None
    heads = np.arange(s.HV) % s.H
    return case.replace(q=case.q[:, :, heads], k=case.k[:, :, heads])


def _first_gate(case: Case) -> Case | None:
    return (
        None if case.shape.HV == 1 else case.replace(g=np.broadcast_to(case.g[:, :, :1], case.g.shape).copy())
    )


def _without_state(case: Case) -> Case | None:
    return None if case.initial_state is None else case.replace(initial_state=None)


def _through(field: str, dtype: str) -> Callable[[Case], Case | None]:
    return lambda case: case.replace(**{field: round_array(format_named(dtype), getattr(case, field))})


def _transposed(initial: bool, final: bool) -> Callable[[Case], Result | None]:
    def run(case: Case) -> Result | None:
        if case.shape.K != case.shape.V or (case.initial_state is None and not final):
            return None
        if initial and case.initial_state is not None:
            case = case.replace(initial_state=np.ascontiguousarray(case.initial_state.swapaxes(-1, -2)))
        output, state = recurrence(case)
        return output, state.swapaxes(-1, -2) if final else state

    return run


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "decay after erase",
        "the erase reads the state before its decay: S' = S·α + β·k·(v − kᵀS)ᵀ",
        _by(Step(erase_reads="undecayed")),
    ),
    Variant(
        "decay after erase",
        "the state is erased first and decayed before the write: S' = α·(I − β·k·kᵀ)·S + β·k·vᵀ",
        _by(Step(decay="between")),
    ),
    Variant(
        "decay after the write",
        "the decay also reaches what the token itself writes: S' = α·((I − β·k·kᵀ)·S + β·k·vᵀ)",
        _by(Step(decay="last")),
    ),
    Variant(
        "missing scale", "the queries are not multiplied by the scale", _on(lambda c: c.replace(scale=1.0))
    ),
    Variant(
        "scale applied twice",
        "the queries are multiplied by the scale twice",
        _on(lambda c: c.replace(scale=c.scale**2)),
    ),
    Variant(
        "natural-log gate taken as base-2",
        "the decay is 2^g instead of e^g",
        _on(_gate(float(np.log(2.0)))),
    ),
    Variant(
        "gate converted to base 2 and then used with e",
        "the decay is e^(g·log2 e) instead of e^g",
        _on(_gate(float(1 / np.log(2.0)))),
    ),
    Variant("gate with the opposite sign", "the decay is e^−g: the state grows", _on(_gate(-1.0))),
    Variant("no decay", "the gate is not used", _on(_gate(0.0))),
    Variant(
        "gate of the first head used for all heads",
        "every value head decays like head 0",
        _on(_first_gate),
    ),
    Variant(
        "β missing", "every token writes with strength 1", _on(lambda c: c.replace(beta=np.ones_like(c.beta)))
    ),
    Variant(
        "no erase", "the written value is not corrected by what the state holds", _by(Step(erases=False))
    ),
    Variant("read before the write", "the output is read from the decayed state", _by(Step(reads="decayed"))),
    Variant(
        "read before the decay and the write",
        "the output is read from the previous state",
        _by(Step(reads="previous")),
    ),
    Variant(
        "head grouping tiled instead of interleaved",
        "value head hv reads query/key head hv % H instead of hv // (HV // H)",
        _on(_tiled),
    ),
    Variant("initial state ignored", "every sequence starts from the zero state", _on(_without_state)),
    Variant(
        "state transposed", "the final state comes back as [V, K]", _transposed(initial=False, final=True)
    ),
    Variant(
        "state transposed", "the initial state is read as [V, K]", _transposed(initial=True, final=False)
    ),
    Variant(
        "state transposed",
        "the initial state is read and the final state returned as [V, K]",
        _transposed(initial=True, final=True),
    ),
    *(
        Variant(f"{word} rounded to {dtype}", f"{word} passes through {dtype}", _on(_through(field, dtype)))
        for dtype in ("bfloat16", "float16")
        for field, word in (("beta", "β"), ("g", "the gate"))
    ),
)
