"""Properties that relate a kernel to another mechanism, to another chunk size, and to no tokens at all."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from verify.audit.case import Array, Case, Outcome
from verify.audit.inputs.probes import probe
from verify.audit.judge import measure
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.mechanism import MECHANISMS
from verify.audit.properties.arrangements import sample
from verify.audit.properties.basic import Property
from verify.audit.reference.results import float64_reference
from verify.model.verdict import Verdict
from verify.numbers.formats import format_named, round_array

_SIZES = (3, 16, 48)
"""Tried where any chunk size is taken: smaller than usual, a usual one, and not a power of two."""
_MOST_SIZES = 3
COMPARISONS = 2 + _MOST_SIZES
"""Comparisons with a tolerance that this module makes, for the false-alarm probability of the certificate."""


def special_cases(lab: Laboratory) -> Property:
    """Inputs for which the mechanism is a simpler one, against the definition of that one."""
    name = "special cases"
    statement = "where the mechanism reduces to another one, the kernel agrees with that one's definition"
    worst, words = 0.0, []
    for label, ours, theirs in reductions(sample(lab, seed=31)):
        if lab.convention.refusal(ours) is not None:
            continue
        outcome, y = lab.run(ours), lab.bench.yardstick(ours)
        if outcome.output is None:
            return Property(name, statement, Verdict.UNDECIDED, _said(outcome))
        seen = lab.convention.as_seen(ours)
        other = float64_reference(theirs(seen))
        ratio = measure(
            outcome.output, other.output, y.output_tolerance + other.output_error, y.output_deviation
        ).worst_ratio
        if outcome.final_state is not None:
            allowed = y.state_tolerance + other.state_error
            state = measure(outcome.final_state, other.final_state, allowed, y.state_deviation)
            ratio = max(ratio, state.worst_ratio)
        words.append(label)
        worst = max(worst, ratio)
        if ratio > 1:
            detail = f"{label}: {ratio:.3g} tolerances from that definition"
            judged = lab.judge(ours)
            if judged.failed:
                return Property(name, statement, Verdict.REFUTED, detail, failing=(judged,))
            finding = Finding(f"wrong in a special case: {label}", f"not so: {statement}", detail)
            return Property(name, statement, Verdict.REFUTED, detail, finding)
    if not words:
        return Property(name, statement, None, "does not apply: no simpler mechanism with these inputs")
    detail = f"{'; '.join(words)}: at most {worst:.2g} of the tolerance"
    return Property(name, statement, Verdict.SAMPLED, detail)


def reductions(case: Case) -> Iterator[tuple[str, Case, Callable[[Case], Case]]]:
    """What is special, a case of that kind, and how such a case reads in the simpler mechanism."""
    mechanism = case.mechanism
    if mechanism == "kda":
        equal = np.repeat(_present(case.g)[..., :1], case.shape.K, axis=-1)
        yield (
            "equal gates in all channels are the gated delta rule",
            case.replace(g=equal),
            lambda seen: _as(seen, "gdn", g=_present(seen.g)[..., 0], beta=seen.beta),
        )
    if mechanism in ("gdn", "kda"):
        yield (
            "no decay is the delta rule",
            case.replace(g=np.zeros_like(_present(case.g))),
            lambda seen: _as(seen, "delta", beta=seen.beta),
        )
    if mechanism in ("mamba2", "simple_gla"):
        yield (
            "no decay is linear attention",
            case.replace(g=np.zeros_like(_present(case.g))),
            lambda seen: _as(seen, "linear"),
        )
    if mechanism == "gdn2":
        strength, s = _present(case.b)[..., :1], case.shape
        alike = {"b": np.repeat(strength, s.K, axis=-1), "w": np.repeat(strength, s.V, axis=-1)}
        yield (
            "equal erase and write gates are Kimi Delta Attention",
            case.replace(**alike),
            lambda seen: _as(seen, "kda", g=seen.g, beta=_present(seen.b)[..., 0]),
        )
    if mechanism == "dplr":
        key = case.spread("k")
        yield (
            "a = k, b = -k without decay is the delta rule at beta = 1",
            case.replace(g=np.zeros_like(_present(case.g)), a=key, b=-key),
            lambda seen: _as(seen, "delta", beta=np.ones(seen.v.shape[:3])),
        )


def _as(case: Case, mechanism: str, g: Array | None = None, beta: Array | None = None) -> Case:
    """The same numbers, read by another mechanism; one whose heads are shared otherwise gets copies."""
    assert MECHANISMS[mechanism].shared == case.kind.shared
    return case.replace(mechanism=mechanism, g=g, beta=beta, a=None, b=None, w=None)


def _present(array: Array | None) -> Array:
    assert array is not None
    return array


def chunk_sizes(lab: Laboratory) -> Property:
    """Other chunk sizes than the usual one, each within the tolerance of its own algorithm."""
    name, statement = "chunk sizes", "every chunk size gives the definition's numbers"
    c = lab.convention
    if not c.chunk_argument or c.chunk_size is None:
        return Property(name, statement, None, "does not apply: the convention names no argument for it")
    case, worst = sample(lab, seed=32, tokens=max(_SIZES) + 3), 0.0
    sizes = [size for size in c.chunk_sizes or _SIZES if size != c.chunk_size][:_MOST_SIZES]
    if not sizes:
        return Property(name, statement, None, f"does not apply: {c.chunk_size} is the only size")
    for size in sizes:
        outcome = lab.subject.run(case, options={c.chunk_argument: size})
        where = f"{c.chunk_argument} = {size}, T = {case.shape.T}"
        if outcome.output is None:
            finding = Finding("a chunk size fails", _said(outcome), where)
            return Property(name, statement, Verdict.REFUTED, f"{where}: {_said(outcome)}", finding)
        declared = dataclasses.replace(c, chunk_size=size)
        y = dataclasses.replace(lab.bench, convention=declared).yardstick(case)
        ratio = measure(outcome.output, y.output, y.output_tolerance, y.output_deviation).worst_ratio
        if outcome.final_state is not None:
            state = measure(outcome.final_state, y.state, y.state_tolerance, y.state_deviation)
            ratio = max(ratio, state.worst_ratio)
        if ratio > 1:
            detail = f"{where}: {ratio:.3g} tolerances from the definition"
            judged = lab.judge(case)
            if judged.failed:
                return Property(name, statement, Verdict.REFUTED, detail, failing=(judged,))
            finding = Finding("a chunk size gives wrong numbers", f"not so: {statement}", detail)
            return Property(name, statement, Verdict.REFUTED, detail, finding)
        worst = max(worst, ratio)
    listed = ", ".join(map(str, sizes))
    return Property(name, statement, Verdict.SAMPLED, f"{listed}: at most {worst:.2g} of the tolerance")


def no_tokens(lab: Laboratory) -> Property:
    """T = 0: an empty output, and the state as it was."""
    name, statement = "no tokens", "T = 0 gives an output without tokens and the initial state as final state"
    c = lab.convention
    if not c.supports_empty:
        return Property(name, statement, None, "does not apply: the convention excludes T = 0")
    case = probe(
        c, lab.dtype, 0, seed=33, initial_state=c.takes_initial_state, grouped=True, size=c.head_size or 8
    )
    outcome = lab.run(case)
    if outcome.problem is not None and outcome.problem.kind == "raised":
        return Property(name, statement, None, f"does not apply: T = 0 is refused: {outcome.problem.message}")
    if outcome.output is None:
        finding = Finding("T = 0 fails", _said(outcome), "B = 1, T = 0")
        return Property(name, statement, Verdict.REFUTED, _said(outcome), finding)
    if outcome.final_state is None:
        return Property(name, statement, Verdict.SAMPLED, "an empty output")
    kept = format_named(outcome.state_dtype)
    start = np.zeros_like(outcome.final_state) if case.initial_state is None else case.initial_state
    if np.array_equal(outcome.final_state, round_array(kept, start)):
        return Property(name, statement, Verdict.SAMPLED, "an empty output and the state, bit for bit")
    detail = "the final state is not the initial one"
    judged = lab.judge(sample(lab, seed=33))
    if judged.failed:
        return Property(name, statement, Verdict.REFUTED, detail, failing=(judged,))
    finding = Finding("T = 0 loses the state", f"not so: {statement}", detail)
    return Property(name, statement, Verdict.REFUTED, detail, finding)


def _said(outcome: Outcome) -> str:
    return "nothing came back" if outcome.problem is None else outcome.problem.message
