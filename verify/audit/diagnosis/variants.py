"""Plausible wrong kernels, in float64: the hypotheses of a diagnosis.

Each variant is a whole computation, or the right one on inputs misread in one way. A kernel that
matches a variant where it misses the definition has that fault.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from verify.audit.case import Array, Case, Directions
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
        erase_reads: the state the erased value is read from, ``"decayed"`` or ``"undecayed"``; "" for that of
            the definition.
        decay: ``"first"``, ``"between"`` erase and write, or ``"last"``, after the write.
        erases: False for a rule that only adds.
        reads: the state the output is read from: ``"written"``, ``"decayed"`` or ``"previous"``.
        held_format: float format that what the state holds at the key is rounded to, before v - S^T k.
        state_format: float format the state is rounded to after every ``rounding_period`` tokens and last.
    """

    erase_reads: str = ""
    decay: str = "first"
    erases: bool = True
    reads: str = "written"
    held_format: str | None = None
    state_format: str | None = None
    rounding_period: int = 1


def recurrence(
    case: Case, step: Step | None = None, way: Directions | None = None, decays: Array | None = None
) -> Result:
    """All tokens of a case in float64, by ``step`` and along ``way`` (defaults: the definition).

    ``decays``, ``[B, T, HV, K or 1]``, stand for e^g.
    """
    step, way, s = step or Step(), way or case.directions, case.shape
    if not step.erase_reads:
        step = replace(step, erase_reads="undecayed" if way.before_decay else "decayed")
    query = case.spread("q") * case.scale
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    output = np.empty((s.B, s.T, s.HV, s.V))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        decays = np.exp(case.log_decay) if decays is None else decays
        for t in range(s.T):
            written, read = _token(step, state, decays[:, t, :, :, None], way, t)
            if step.state_format is not None and ((t + 1) % step.rounding_period == 0 or t + 1 == s.T):
                written = round_array(format_named(step.state_format), written)
            output[:, t] = np.einsum("bhkv,bhk->bhv", written if read is None else read, query[:, t])
            state = written
    return output, state


def _token(step: Step, state: Array, decay: Array, way: Directions, t: int) -> tuple[Array, Array | None]:
    """The state after one token, and the state its output is read from when that is another one."""
    decayed = decay * state
    source = decayed if step.erase_reads == "decayed" and step.decay == "first" else state
    held = np.einsum("bhkv,bhk->bhv", source, way.read[:, t])
    if step.held_format is not None:
        held = round_array(format_named(step.held_format), held)
    removed = float(step.erases) * way.out[:, t, :, :, None] * held[..., None, :]
    added = way.key[:, t, :, :, None] * way.value[:, t, :, None, :]
    if step.decay == "first":
        written = decayed + removed + added
    elif step.decay == "between":
        written = decay * (state + removed) + added
    else:
        written = decay * (state + removed + added)
    return written, {"written": None, "decayed": decayed, "previous": state}[step.reads]


def attention(
    case: Case,
    *,
    first_hidden: int | None = 1,
    normalised: bool = True,
    window: int | None = None,
    sunk: bool = True,
    epsilon: float = 0.0,
) -> Result:
    """Attention in float64 and no state; token t reads tokens j < t + ``first_hidden``.

    ``window``: another one than the mechanism's; ``sunk``: whether its sink takes weight; ``epsilon``: what
    is added to the sum of the weights.
    """
    s = case.shape
    query, key = case.spread("q") * case.scale, case.spread("k")
    seen = np.tri(s.T, k=s.T if first_hidden is None else first_hidden - 1, dtype=bool)
    width = window or case.kind.window
    if width is not None:
        seen &= ~np.tri(s.T, k=-width, dtype=bool)
    products = np.einsum("bthk,bjhk->bhtj", query, key)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        if case.kind.weights == "softmax":
            logits = np.where(seen, products, -np.inf)
            if case.kind.sink is not None and sunk:
                sink = np.full((*logits.shape[:-1], 1), case.kind.sink)
                logits = np.concatenate([logits, sink], axis=-1)
            weights = np.exp(
                logits - (logits.max(axis=-1, keepdims=True, initial=-np.inf) if normalised else 0.0)
            )
        else:
            weights = np.where(seen, products, 0.0)
        weights /= weights.sum(-1, keepdims=True) + epsilon if normalised else 1.0
        output = np.einsum("bhtj,bjhv->bthv", np.nan_to_num(weights)[..., : s.T], case.spread("v"))
    return output, np.zeros((s.B, s.HV, 0, 0))


def _by(step: Step) -> Callable[[Case], Result | None]:
    return lambda case: recurrence(case, step) if case.kind.stateful else None


def _attending(first_hidden: int | None = 1, normalised: bool = True) -> Callable[[Case], Result | None]:
    def run(case: Case) -> Result | None:
        if case.kind.stateful:
            return None
        return attention(case, first_hidden=first_hidden, normalised=normalised)

    return run


def _on(change: Callable[[Case], Case | None]) -> Callable[[Case], Result | None]:
    def run(case: Case) -> Result | None:
        misread = change(case)
        if misread is None:
            return None
        return recurrence(misread) if case.kind.stateful else attention(misread)

    return run


def _with(field: str, change: Callable[[Array], Array]) -> Callable[[Case], Case | None]:
    """The case with one input misread; None for a mechanism that does not have it."""

    def misread(case: Case) -> Case | None:
        if field not in case.arrays():
            return None
        dtype = "float64" if field == "g" else case.gate_dtype
        return case.replace(**{field: change(getattr(case, field))}, gate_dtype=dtype)

    return misread


def _bare(case: Case) -> Result | None:
    if case.beta is None:
        return None
    return recurrence(case.replace(beta=np.ones_like(case.beta)), Step(erases=False))


def _gate(factor: float) -> Callable[[Case], Case | None]:
    return _with("g", lambda g: g * factor)


def _tiled(case: Case) -> Case | None:
    """Output head hv on the lent head hv % H instead of hv // (HV // H)."""
    s = case.shape
    if s.H in (1, s.HV):
        return None
    heads = np.arange(s.HV) % s.H
    return case.replace(**{field: getattr(case, field)[:, :, heads] for field in case.kind.shared})


def _without_state(case: Case) -> Case | None:
    return None if case.initial_state is None else case.replace(initial_state=None)


def _through(field: str, dtype: str) -> Callable[[Case], Case | None]:
    return _with(field, lambda x: round_array(format_named(dtype), x))


def _transposed(initial: bool, final: bool) -> Callable[[Case], Result | None]:
    def run(case: Case) -> Result | None:
        if (
            not case.kind.stateful
            or case.shape.K != case.shape.V
            or (case.initial_state is None and not final)
        ):
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
        "missing scale",
        "the queries are not multiplied by the scale: matches if the caller does that",
        _on(lambda c: c.replace(scale=1.0)),
    ),
    Variant(
        "scale applied twice",
        "the queries are multiplied by the scale twice: matches if the function has one of its own besides",
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
        _on(_with("g", lambda g: np.broadcast_to(g[:, :, :1], g.shape).copy())),
    ),
    Variant("β missing", "every token writes with strength 1", _on(_with("beta", np.ones_like))),
    Variant(
        "no erase", "the written value is not corrected by what the state holds", _by(Step(erases=False))
    ),
    Variant(
        "neither erase nor write strength",
        "every token adds its key and value as they are: S' = α·S + k·vᵀ",
        _bare,
    ),
    Variant("read before the write", "the output is read from the decayed state", _by(Step(reads="decayed"))),
    Variant(
        "read before the decay and the write",
        "the output is read from the previous state",
        _by(Step(reads="previous")),
    ),
    Variant(
        "head grouping tiled instead of interleaved",
        "output head hv reads head hv % H of what heads share instead of hv // (HV // H)",
        _on(_tiled),
    ),
    Variant("no causal mask", "every token reads all tokens", _attending(first_hidden=None)),
    Variant("mask one token too wide", "a token reads the next one too", _attending(first_hidden=2)),
    Variant("mask one token too narrow", "a token does not read itself", _attending(first_hidden=0)),
    Variant("no normaliser", "weights are not divided by their sum", _attending(normalised=False)),
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
