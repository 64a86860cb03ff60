"""Properties of calls that ask for the same numbers in another way, held to the derived tolerances."""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from verify.audit.case import Case, Outcome
from verify.audit.inputs.probes import probe
from verify.audit.judge import judge
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.properties.basic import Property
from verify.model.verdict import Verdict

COMPARISONS = 13
"""Comparisons with a tolerance that this module makes, for the false-alarm probability of the certificate."""
_PAD = "pad"


def separate_heads_and_sequences(lab: Laboratory) -> Property:
    """Two sequences of two heads, then each alone: what reads another's data gives other numbers."""
    name = "separate sequences and heads"
    statement = "a sequence and a head give alone what they give among others"
    case = _batch(lab, seed=3)
    s, parts = case.shape, []
    together = lab.run(case)
    if together.output is None:
        said = "nothing came back" if together.problem is None else together.problem.message
        return Property(name, statement, Verdict.UNDECIDED, said)
    # Heads that have gate constants of their own, by their number, stay together.
    apart = [[h] for h in range(s.H)] if lab.convention.gate_form == "value" else [list(range(s.H))]
    for b, lent in itertools.product(range(s.B), apart):
        group = [h * (s.HV // s.H) + i for h in lent for i in range(s.HV // s.H)]
        alone = {
            field: array[[b]][:, group]
            if field == "initial_state"
            else array[[b]][:, :, lent if field in case.kind.shared else group]
            for field, array in case.arrays().items()
        }
        state = None if together.final_state is None else together.final_state[[b]][:, group]
        output = together.output[[b]][:, :, group]
        parts.append(
            (
                case.replace(**alone),
                Outcome(output, state, together.output_dtype, together.state_dtype, None, 0.0),
            )
        )
    return _judged(lab, name, statement, parts)


def strided_inputs(lab: Laboratory) -> Property:
    """Inputs whose rows are not contiguous in memory, NaN between their numbers."""
    name, statement = "strided inputs", "inputs that are not contiguous give what contiguous ones give"
    case = _batch(lab, seed=4)
    outcome = lab.subject.run(case, layout="strided")
    if outcome.problem is not None and outcome.problem.kind == "raised":
        return Property(name, statement, None, f"does not apply: {outcome.problem.message}")
    return _judged(lab, name, statement, [(case, outcome)])


def repeated_run(lab: Laboratory) -> Property:
    """The same call twice. A kernel that adds in another order each time promises no bits."""
    name, statement = "repeated run", "the same call gives the same bits again"
    case = _batch(lab, seed=5)
    first, again = lab.run(case), lab.run(case)
    pairs = [(first.output, again.output), (first.final_state, again.final_state)]
    same = all(
        a is b or np.array_equal(a, b, equal_nan=True) for a, b in pairs if a is not None and b is not None
    )
    if same:
        return Property(name, statement, Verdict.SAMPLED, f"T = {case.shape.T}, bit for bit")
    return Property(name, statement, None, "does not apply: two runs on the same input differ in bits")


def packed_sequences(lab: Laboratory) -> Property:
    """Sequences of several lengths along T, told apart by their offsets; then with NaN between them."""
    name, statement = "packed sequences", "sequences packed along T give what separate calls give"
    convention = lab.convention
    if not convention.cu_seqlens:
        return Property(name, statement, None, "does not apply: the convention has no packed sequences")
    chunk = convention.chunk_size or 16
    cases = [_sequence(lab, n, 6 + i) for i, n in enumerate((1, chunk // 2 + 1, chunk, chunk + 3))]
    found = _packed(lab, name, statement, cases)
    if found.verdict is not Verdict.SAMPLED:
        return found
    pads = [_nothing(_sequence(lab, n, 10 + n)) for n in (3, 1, chunk)]
    alternating = [x for pair in itertools.zip_longest(cases, pads) for x in pair if x is not None]
    apart = _packed(lab, name, statement, alternating)
    if apart.verdict is None:
        return dataclasses.replace(found, detail=f"{found.detail}; NaN is refused: {apart.detail}")
    if apart.verdict is Verdict.SAMPLED:
        return dataclasses.replace(found, detail=f"{found.detail}; with NaN between them: {apart.detail}")
    said = "pads of NaN between packed sequences, sequences of their own by the offsets, reach the others"
    finding = Finding("packed sequences: pads between them take part", said, apart.detail)
    return Property(name, statement, Verdict.REFUTED, said, finding)


def _sequence(lab: Laboratory, tokens: int, seed: int) -> Case:
    c = lab.convention
    return probe(c, lab.dtype, tokens, seed=seed, initial_state=c.takes_initial_state, grouped=True)


def _nothing(case: Case) -> Case:
    """A sequence of NaN, from a state that is a state."""
    return case.replace(**{f: np.full_like(case.arrays()[f], np.nan) for f in case.kind.tokens}, name=_PAD)


def _packed(lab: Laboratory, name: str, statement: str, cases: Sequence[Case]) -> Property:
    """All in one call, those that are not pads held to their own yardsticks; None for a refusal of NaN."""
    outcome = lab.subject.run_packed(cases)
    lengths = [case.shape.T for case in cases]
    if outcome.problem is not None or outcome.output is None:
        said = "nothing came back" if outcome.problem is None else outcome.problem.message
        padded = any(case.name == _PAD for case in cases)
        if padded and outcome.problem is not None and outcome.problem.kind == "raised":
            return Property(name, statement, None, said)
        finding = Finding("packed sequences fail", said, f"lengths {', '.join(map(str, lengths))}")
        return Property(name, statement, Verdict.REFUTED, said, finding)
    ends, parts = np.cumsum(lengths), []
    for i, (case, end) in enumerate(zip(cases, ends, strict=True)):
        state = None if outcome.final_state is None else outcome.final_state[i : i + 1]
        output = outcome.output[:, end - case.shape.T : end]
        part = Outcome(output, state, outcome.output_dtype, outcome.state_dtype, None, outcome.seconds)
        parts += [] if case.name == _PAD else [(case, part)]
    return _judged(lab, name, statement, parts)


def _batch(lab: Laboratory, seed: int) -> Case:
    """Two sequences of two heads or more, a chunk and a half long."""
    c = lab.convention
    chunk = min(c.chunk_size or 16, 64)
    tokens = lab.length(chunk + chunk // 2 + 3)
    first, second = (
        probe(c, lab.dtype, tokens, seed=own, initial_state=c.takes_initial_state, grouped=True)
        for own in (seed, seed + 100)
    )
    pairs = first.arrays(), second.arrays()
    return first.replace(**{field: np.concatenate([x[field] for x in pairs]) for field in pairs[0]})


def _judged(lab: Laboratory, name: str, statement: str, runs: Sequence[tuple[Case, Outcome]]) -> Property:
    """Each outcome against the yardstick of its case."""
    worst = 0.0
    for case, outcome in runs:
        if outcome.output is None:
            said = "nothing came back" if outcome.problem is None else outcome.problem.message
            return Property(name, statement, Verdict.UNDECIDED, said)
        judgement = judge(case, outcome, lab.bench.yardstick(case))
        measures = [m for m in (judgement.output, judgement.state) if m is not None]
        worst = max(worst, *(m.worst_ratio for m in measures))
        if judgement.failed:
            plain = lab.judge(case)
            detail = f"T = {case.shape.T}: {worst:.3g} tolerances from the definition"
            if plain.failed:
                return Property(name, statement, Verdict.REFUTED, detail, failing=(plain,))
            own = max(m.worst_ratio for m in (plain.output, plain.state) if m is not None)
            evidence = f"{detail}; the plain call is within {own:.2g} of the tolerance"
            finding = Finding(f"{name}: wrong numbers", f"not so: {statement}", evidence)
            return Property(name, statement, Verdict.REFUTED, detail, finding)
    counted = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    return Property(name, statement, Verdict.SAMPLED, f"{counted}: at most {worst:.2g} of the tolerance")
