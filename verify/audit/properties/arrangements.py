"""Properties of the same call arranged in another way: its bits first, then the derived tolerance.

A kernel may choose another order of summation for another batch, and then promises no bits; it must stay
within the tolerance. Where the convention declares `batch_invariant`, other bits are a fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from verify.audit.case import Case, Outcome
from verify.audit.inputs.probes import probe
from verify.audit.judge import measure
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.properties.basic import Property, same_bits
from verify.model.verdict import Verdict

COMPARISONS = 14
"""Comparisons with a tolerance that this module makes, for the false-alarm probability of the certificate."""
Places = tuple[Sequence[int], Sequence[int]]
"""Sequences and output heads of the plain call, in the order of the other call."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """Another call for some of the same numbers.

    Args:
        label: which call, in a few words.
        outcome: what it gave.
        places: the sequences and heads of the plain call that it should give again.
    """

    label: str
    outcome: Outcome
    places: Places


def batch_permutation(lab: Laboratory) -> Property:
    """The sequences of a batch in another order."""
    name, statement = "batch permutation", "sequences in another order give the same, in that order"
    case, plain, refused = _plain(lab, seed=21)
    if refused:
        return Property(name, statement, *refused)
    order = list(range(case.shape.B))[::-1]
    outcome = lab.run(of_sequences(case, order))
    return _compared(
        lab, name, statement, case, plain, [Arranged("reversed", outcome, (order, _heads(case)))]
    )


def head_permutation(lab: Laboratory) -> Property:
    """The heads in another order, each with the heads that it lends to."""
    name, statement = "head permutation", "heads in another order give the same, in that order"
    if lab.convention.gate_form != "value":
        return Property(name, statement, None, "does not apply: heads have gate constants of their own")
    case, plain, refused = _plain(lab, seed=22)
    if refused:
        return Property(name, statement, *refused)
    s = case.shape
    group = s.HV // s.H
    lent = list(range(s.H))[::-1]
    whole = [h * group + i for h in lent for i in range(group)]
    fields = {
        field: array[:, whole]
        if field == "initial_state"
        else array[:, :, lent if field in case.kind.shared else whole]
        for field, array in case.arrays().items()
    }
    outcome = lab.run(case.replace(**fields))
    places = list(range(s.B)), whole
    return _compared(lab, name, statement, case, plain, [Arranged("reversed", outcome, places)])


def batch_invariance(lab: Laboratory) -> Property:
    """Each sequence of a batch in a call of its own."""
    name, statement = "batch invariance", "a sequence gives the same whatever else is in the batch"
    case, plain, refused = _plain(lab, seed=23)
    if refused:
        return Property(name, statement, *refused)
    alone = [
        Arranged(f"sequence {b} alone", lab.run(of_sequences(case, [b])), ([b], _heads(case)))
        for b in range(case.shape.B)
    ]
    return _compared(lab, name, statement, case, plain, alone)


def memory_around_inputs(lab: Laboratory) -> Property:
    """Every input in the middle of memory full of NaN."""
    name = "memory around inputs"
    statement = "what lies before and after an input in memory is never used: NaN there changes nothing"
    case, plain, refused = _plain(lab, seed=24)
    if refused:
        return Property(name, statement, *refused)
    outcome = lab.subject.run(case, layout="surrounded")
    places = list(range(case.shape.B)), _heads(case)
    return _compared(lab, name, statement, case, plain, [Arranged("NaN around", outcome, places)])


def expanded_inputs(lab: Laboratory) -> Property:
    """A batch of one sequence repeated without a copy, with stride 0."""
    name, statement = "expanded inputs", "inputs with stride 0 give what copies of the same numbers give"
    if lab.convention.token_layout == "THD":
        return Property(name, statement, None, "does not apply: sequences are packed along one axis")
    case, plain, refused = _plain(lab, seed=25, repeated=True)
    if refused:
        return Property(name, statement, *refused)
    outcome = lab.subject.run(case, layout="expanded")
    if outcome.problem is not None and outcome.problem.kind == "raised":
        return Property(name, statement, None, f"does not apply: {outcome.problem.message}")
    places = list(range(case.shape.B)), _heads(case)
    return _compared(lab, name, statement, case, plain, [Arranged("stride 0", outcome, places)])


def absent_inputs(lab: Laboratory) -> Property:
    """None for an input that the convention calls optional, beside the value that it stands for."""
    name, statement = "absent inputs", "None gives what a gate of 0 or a write strength of 1 gives"
    fields = [field for field in lab.convention.optional if field in lab.convention.kind.tokens]
    if not fields:
        return Property(name, statement, None, "does not apply: the convention has no input that may be None")
    parts = []
    for field in fields:
        case, plain, refused = _plain(lab, seed=26, values={field: float(field == "beta")})
        if refused:
            return Property(name, statement, *refused)
        outcome = lab.subject.run(case, absent=[field])
        places = list(range(case.shape.B)), _heads(case)
        arranged = [Arranged(f"{field} = None", outcome, places)]
        parts.append(_compared(lab, name, statement, case, plain, arranged, bits=False))
    worst = [part for part in parts if part.verdict is not Verdict.SAMPLED]
    details = "; ".join(part.detail for part in parts)
    return worst[0] if worst else Property(name, statement, Verdict.SAMPLED, details)


def sample(
    lab: Laboratory,
    seed: int,
    *,
    tokens: int | None = None,
    repeated: bool = False,
    values: Mapping[str, float] = MappingProxyType({}),
) -> Case:
    """Two sequences of two heads or more, a chunk and a half long, some inputs the same number everywhere."""
    c = lab.convention
    chunk = min(c.chunk_size or 16, 64)
    tokens = lab.length(tokens or chunk + chunk // 2 + 3)
    first, second = (
        probe(
            c,
            lab.dtype,
            tokens,
            seed=own,
            initial_state=c.takes_initial_state,
            grouped=True,
            size=c.head_size or 8,
        )
        for own in (seed, seed if repeated else seed + 100)
    )
    pairs = first.arrays(), second.arrays()
    case = first.replace(**{field: np.concatenate([x[field] for x in pairs]) for field in pairs[0]})
    fixed = {field: np.full_like(getattr(case, field), value) for field, value in values.items()}
    return case.replace(**fixed) if fixed else case


def _plain(
    lab: Laboratory,
    seed: int,
    *,
    repeated: bool = False,
    values: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Case, Outcome, tuple[Verdict, str] | None]:
    """A case, what the plain call gives for it, and why there is nothing to compare with."""
    case = sample(lab, seed, repeated=repeated, values=values)
    outcome = lab.run(case)
    if outcome.output is not None:
        return case, outcome, None
    said = "nothing came back" if outcome.problem is None else outcome.problem.message
    return case, outcome, (Verdict.UNDECIDED, f"no output to compare with: {said}")


def _heads(case: Case) -> list[int]:
    return list(range(case.shape.HV))


def of_sequences(case: Case, order: Sequence[int]) -> Case:
    """Some sequences of a batch, in a given order."""
    return case.replace(**{field: array[order] for field, array in case.arrays().items()})


def _compared(
    lab: Laboratory,
    name: str,
    statement: str,
    case: Case,
    plain: Outcome,
    calls: Sequence[Arranged],
    *,
    bits: bool = True,
) -> Property:
    """The other calls beside the plain one: the same bits, or numbers within the tolerance."""
    assert plain.output is not None
    about, worst, apart = f"T = {case.shape.T}", 0.0, []
    labels, whole = ", ".join(call.label for call in calls), (list(range(case.shape.B)), _heads(case))
    for call in calls:
        if call.outcome.output is None:
            said = "nothing came back" if call.outcome.problem is None else call.outcome.problem.message
            finding = Finding(
                f"{name}: the call fails", f"{call.label}: {said}", f"{about}; the plain call works"
            )
            return Property(name, statement, Verdict.REFUTED, f"{call.label}: {said}", finding)
        if not _same(plain, call):
            apart.append(call.label)
            # Whichever of the two is wrong.
            worst = max(worst, _ratio(lab, case, call), _ratio(lab, case, Arranged("plain", plain, whole)))
    if worst > 1:
        detail = f"{about}, {', '.join(apart)}: {worst:.3g} tolerances from the definition"
        judged = lab.judge(case)
        if judged.failed:
            return Property(name, statement, Verdict.REFUTED, detail, failing=(judged,))
        finding = Finding(
            f"{name}: wrong numbers", f"not so: {statement}", f"{detail}; the plain call is not"
        )
        return Property(name, statement, Verdict.REFUTED, detail, finding)
    if apart and bits and lab.convention.batch_invariant:
        detail = f"{about}, {', '.join(apart)}: other bits, within {worst:.2g} of the tolerance"
        why = "the convention declares the function batch-invariant, and its bits depend on the arrangement"
        return Property(name, statement, Verdict.REFUTED, detail, Finding(f"{name}: other bits", why, detail))
    if apart:
        detail = f"{about}, {', '.join(apart)}: not bit for bit, within {worst:.2g} of the tolerance"
        return Property(name, statement, Verdict.SAMPLED, detail)
    return Property(name, statement, Verdict.SAMPLED, f"{about}, {labels}: bit for bit")


def _same(plain: Outcome, call: Arranged) -> bool:
    assert plain.output is not None
    assert call.outcome.output is not None
    b, h = call.places
    same = same_bits(plain.output[b][:, :, h], call.outcome.output)
    if plain.final_state is None or call.outcome.final_state is None:
        return same and plain.final_state is call.outcome.final_state
    return same and same_bits(plain.final_state[b][:, h], call.outcome.final_state)


def _ratio(lab: Laboratory, case: Case, call: Arranged) -> float:
    """The largest error over tolerance of one call."""
    y, outcome, (b, h) = lab.bench.yardstick(case), call.outcome, call.places
    assert outcome.output is not None
    tolerance = y.output_tolerance[b][:, :, h]
    ratio = measure(outcome.output, y.output[b][:, :, h], tolerance, tolerance).worst_ratio
    if outcome.final_state is None:
        return ratio
    tolerance = y.state_tolerance[b][:, h]
    return max(ratio, measure(outcome.final_state, y.state[b][:, h], tolerance, tolerance).worst_ratio)
