"""Properties that hold for every correct kernel, whatever its tolerance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.bench import Bench
from verify.audit.case import Array, Case, Outcome
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, measure
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.reference.confirm import confirm
from verify.audit.reference.levels import reference_at
from verify.model.verdict import Verdict

SPLIT_COMPARISONS = 4
"""Comparisons with a tolerance that this module makes, for the false-alarm probability of the certificate."""
_CONFIRMED_CELLS = 3
_CONFIRMING_BITS = 192
"""More than the balls that judge have."""
_TELLING_LENGTH = 8


@dataclass(frozen=True, eq=False)
class Property:
    """One property and what became of it.

    Args:
        verdict: None where the property does not apply to this kernel; ``detail`` says why.
        finding: the reason, when it is refuted.
        pair: two inputs whose outputs should agree before the token ``cut``.
        leaks: whether wrong numbers in cells may come from this violation.
        failing: runs made for this property that fail by themselves, for the diagnosis.
    """

    name: str
    statement: str
    verdict: Verdict | None
    detail: str
    finding: Finding | None = None
    pair: tuple[Case, Case] | None = None
    cut: int = 0
    leaks: bool = False
    failing: tuple[Judgement, ...] = ()

    def entry(self) -> dict[str, Any]:
        """The certificate's entry."""
        verdict = None if self.verdict is None else str(self.verdict)
        return {"name": self.name, "statement": self.statement, "verdict": verdict, "detail": self.detail}


def causality(lab: Laboratory) -> Property:
    """Change the inputs from token p on and compare the outputs before p bit for bit."""
    name, statement = "causality", "changing inputs at tokens t >= p leaves output[:p] unchanged, bit for bit"
    chunk = lab.convention.chunk_size or 16
    tokens = lab.length(chunk + chunk // 2 + 3)
    case = probe(lab.convention, lab.dtype, tokens, seed=1, grouped=True)
    first, again = lab.run(case), lab.run(case)
    if first.output is None or again.output is None:
        return Property(name, statement, Verdict.UNDECIDED, f"no output to compare: {_said(first, again)}")
    if not same_bits(first.output, again.output):
        detail = f"two runs on the same input differ (T = {tokens}), so bits cannot be compared"
        return Property(name, statement, Verdict.UNDECIDED, detail)
    cuts = sorted(
        {p for p in (1, 8, 16, chunk // 2, chunk - 1, chunk, chunk + 1, tokens - 1) if 0 < p < tokens}
    )
    for cut in cuts:
        changed = later(case, cut, case.kind.tokens)
        other = lab.run(changed)
        if other.output is None:
            return Property(name, statement, Verdict.UNDECIDED, f"no output to compare: {_said(other)}")
        if not same_bits(first.output[:, :cut], other.output[:, :cut]):
            return _leak(lab, name, statement, case, first.output, cut)
    return Property(name, statement, Verdict.SAMPLED, f"T = {tokens}, p = {', '.join(map(str, cuts))}")


def later(case: Case, cut: int, fields: Iterable[str]) -> Case:
    """Other values in the named fields from token ``cut`` on."""
    changes: dict[str, object] = {}
    for field in fields:
        array = getattr(case, field).copy()
        # Another order of the same values: still representable, of the same size and sign.
        array[:, cut:] = np.roll(np.flip(array[:, cut:], axis=tuple(range(2, array.ndim))), 1, axis=1)
        if field == "g":
            array[:, cut:] *= 2
        if field == "v":
            array[:, cut:] *= -1
        changes[field] = array
    return case.replace(**changes)


def _leak(lab: Laboratory, name: str, statement: str, case: Case, before: Array, cut: int) -> Property:
    """Which inputs leak, and whether by more than rounding."""
    moved: dict[str, float] = {}
    for field in case.kind.tokens:
        other = lab.run(later(case, cut, [field])).output
        if other is not None and not same_bits(before[:, :cut], other[:, :cut]):
            moved[field] = _largest_change(before[:, :cut], other[:, :cut])
    changed = later(case, cut, case.kind.tokens)
    other = lab.run(changed).output
    assert other is not None
    tolerance = lab.bench.yardstick(case).output_tolerance[:, :cut]
    size = measure(other[:, :cut], before[:, :cut], tolerance, tolerance).worst_ratio
    inputs = (
        ", ".join(f"{field} (by {change:.2g})" for field, change in moved.items())
        or "several inputs together"
    )
    detail = f"T = {case.shape.T}, p = {cut}: output[:p] changes with {inputs}"
    if size <= 1:
        reason = "rounding depends on later tokens"
        why = (
            f"{detail}: within the tolerance, so the formula is right and its roundings depend on later "
            "tokens, as with a decay anchor on a later row"
            if set(moved) <= {"g"}
            else f"{detail}: within the tolerance, so the roundings of a token depend on later tokens"
        )
    else:
        reason, why = (
            "a token reads later tokens",
            f"{detail}: beyond the tolerance, as when a mask is too wide",
        )
    evidence = f"bitwise comparison; the largest change is {size:.3g} times the tolerance"
    finding = Finding(reason, why, evidence)
    return Property(name, statement, Verdict.REFUTED, detail, finding, (case, changed), cut, leaks=size > 1)


def split_and_resume(lab: Laboratory) -> Property:
    """Process a sequence in two pieces, handing the state over, and compare with the whole."""
    name, statement = (
        "split and resume",
        "two runs joined by the state give what one run over all tokens gives",
    )
    c = lab.convention
    if not c.takes_initial_state or not c.returns_state:
        lack = "takes no initial state" if not c.takes_initial_state else "returns no final state"
        return Property(name, statement, None, f"does not apply: the convention {lack}")
    chunk = c.chunk_size or 16
    tokens = lab.length(chunk + chunk // 2 + 3)
    case = probe(c, lab.dtype, tokens, seed=2, initial_state=True, grouped=True)
    cuts = sorted({lab.length(p) for p in (1, chunk // 2 + 1, chunk, chunk + 1)} - {tokens})[
        :SPLIT_COMPARISONS
    ]
    cuts = [p for p in cuts if p < tokens]
    if not cuts:
        return Property(
            name, statement, None, f"does not apply: no two lengths in multiples of {c.length_multiple}"
        )
    yardstick = lab.bench.yardstick(case)
    worst = 0.0
    for cut in cuts:
        head = lab.run(case.slice(0, cut, case.initial_state))
        if head.output is None or head.final_state is None:
            return Property(
                name, statement, Verdict.UNDECIDED, f"the first piece gave nothing: {_said(head)}"
            )
        state = head.final_state.astype(case.gate_dtype).astype(np.float64)
        if not np.array_equal(state, head.final_state):
            detail = f"does not apply: a {head.state_dtype} state cannot be handed back as {case.gate_dtype}"
            return Property(name, statement, None, detail)
        tail = lab.run(case.slice(cut, tokens, state))
        if tail.output is None or tail.final_state is None:
            return Property(
                name, statement, Verdict.UNDECIDED, f"the second piece gave nothing: {_said(tail)}"
            )
        y = yardstick
        joined = np.concatenate([head.output, tail.output], axis=1)
        ratio = max(
            measure(joined, y.output, y.output_tolerance, y.output_deviation).worst_ratio,
            measure(tail.final_state, y.state, y.state_tolerance, y.state_deviation).worst_ratio,
        )
        if ratio > 1:
            detail = f"T = {tokens} cut at {cut}: {ratio:.3g} tolerances from the definition over all tokens"
            pieces = (case, case.slice(0, cut, case.initial_state), case.slice(cut, tokens, state))
            failing = tuple(j for piece in pieces if (j := lab.judge(piece)).failed)
            return Property(name, statement, Verdict.REFUTED, detail, failing=failing)
        worst = max(worst, ratio)
    detail = f"T = {tokens}, cut at {', '.join(map(str, cuts))}: at most {worst:.2g} of the tolerance"
    return Property(name, statement, Verdict.SAMPLED, detail)


def unchanged_inputs(judgements: Sequence[Judgement]) -> Property:
    """No call wrote into what it was given."""
    name, statement = "inputs unchanged", "a call leaves every input tensor as it was, bit for bit"
    wrote = [j for j in judgements if j.problem is not None and j.problem.kind == "inputs-mutated"]
    if wrote:
        assert wrote[0].problem is not None
        return Property(name, statement, Verdict.REFUTED, f"{wrote[0].problem.message} ({len(wrote)} cells)")
    ended = [j for j in judgements if j.output is not None]
    return _held(name, statement, len(ended))


def finite(judgements: Sequence[Judgement]) -> Property:
    """Finite inputs of moderate size give finite outputs."""
    name, statement = "finite", "finite inputs give finite outputs and states"
    ended = [j for j in judgements if j.output is not None or j.state is not None]
    broken = [j for j in ended if j.nonfinite]
    if broken:
        classes = sorted({j.case.name for j in broken})
        detail = f"{len(broken)} of {len(ended)} cells have values that are not finite: {', '.join(classes)}"
        return Property(name, statement, Verdict.REFUTED, detail)
    return _held(name, statement, len(ended))


def integer_exact(judgements: Sequence[Judgement]) -> Property:
    """On small integers nothing rounds, so every bit is determined."""
    name, statement = (
        "exact on integers",
        "on small-integer inputs every output and state is exact, bit for bit",
    )
    exact = [j for j in judgements if j.yardstick.kind == "exact" and j.output is not None]
    if broken := [j for j in exact if j.failed]:
        return Property(name, statement, Verdict.REFUTED, f"{len(broken)} of {len(exact)} cells differ")
    return _held(name, statement, len(exact))


def confirmed_reference(judgements: Sequence[Judgement], bench: Bench) -> Property:
    """Balls around the exact result confirm the reference and its bound: a check of the tool."""
    name = "reference confirmed"
    statement = (
        f"the reference is within its own bound of the exact result, enclosed by {_CONFIRMING_BITS}-bit balls"
    )
    floats = [j for j in judgements if j.yardstick.kind != "exact"]
    floats.sort(key=lambda j: (j.case.shape.T < _TELLING_LENGTH, j.case.v.size))
    small = list({j.case.name: j for j in reversed(floats[: 4 * _CONFIRMED_CELLS])}.values())[
        :_CONFIRMED_CELLS
    ]
    worst, rows = 0.0, 0
    for j in small:
        case = bench.convention.as_seen(j.case)
        result = confirm(case, reference_at(case, bench.reference), precision=_CONFIRMING_BITS)
        if not result.holds:
            detail = (
                f"class {j.case.name}: {result.contradicted} bounds contradicted, {result.undecided} open, "
                f"{result.confirmed} confirmed; a fault of this tool, not of the kernel"
            )
            return Property(name, statement, Verdict.UNDECIDED, detail)
        worst, rows = max(worst, result.worst), rows + result.confirmed
    if not small:
        return _held(name, statement, 0)
    detail = f"{len(small)} cells, {rows} rows: errors of at most {worst:.2g} of their bounds"
    return Property(name, statement, Verdict.SAMPLED, detail)


def _held(name: str, statement: str, count: int) -> Property:
    if not count:
        return Property(name, statement, Verdict.UNDECIDED, "no cell gave anything to look at")
    return Property(name, statement, Verdict.SAMPLED, f"{count} cells")


def same_bits(a: Array, b: Array) -> bool:
    """Whether they agree bit for bit, any NaN equal to any other."""
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b))


def _largest_change(a: Array, b: Array) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(a - b), initial=0.0))


def _said(*outcomes: Outcome) -> str:
    return next((o.problem.message for o in outcomes if o.problem is not None), "nothing came back")
