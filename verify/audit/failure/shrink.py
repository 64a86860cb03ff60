"""Makes a failing input smaller and simpler while it keeps failing in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case, Outcome
from verify.audit.failure.simplify import simpler
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.judge import Judgement
from verify.audit.laboratory import Laboratory

MOST_ATTEMPTS = 100
MOST_GRADIENT_ATTEMPTS = 30
_SLOW = ("timeout", "memory", "killed")
_MOST_SLOW_ATTEMPTS = 1
_NOT_FINITE = ("not-finite",)
_BEYOND = ("beyond-worst-case",)


def symptom(judgement: Judgement) -> tuple[str, ...]:
    """In which way a cell fails; a shrunk input must fail in the same way."""
    if judgement.problem is not None:
        return (judgement.problem.kind,)
    parts = (("output", judgement.output), ("state", judgement.state))
    failed = [(name, m) for name, m in parts if m is not None and m.failed]
    if any(m.nonfinite for _, m in failed):
        return _NOT_FINITE
    return tuple(name for name, _ in failed) or (_BEYOND if judgement.beyond_worst_case else ())


def shrink(lab: Laboratory, failing: Judgement) -> Judgement:
    """The smallest and simplest input found that fails as ``failing`` does."""
    kind = symptom(failing)

    def fails(case: Case) -> bool:
        """Without a reference and its tolerance where the symptom needs none."""
        if kind in (("output",), ("state",), ("output", "state"), _BEYOND):
            judged = lab.judge(case)
            return judged.failed and symptom(judged) == kind
        return _bare_symptom(lab.run(case)) == kind

    best = _smallest(lab, failing.case, fails, _MOST_SLOW_ATTEMPTS if kind[0] in _SLOW else MOST_ATTEMPTS)
    return failing if best is failing.case else lab.judge(best)


def shrink_gradients(lab: Laboratory, failing: GradientJudgement) -> GradientJudgement:
    """The same for gradients: those of as many inputs fail, as finite or not as before."""

    def fails(case: Case) -> bool:
        if failing.nonfinite:
            found = lab.run_gradients(case).gradients
            return any(not np.isfinite(x).all() for x in found.values())
        if failing.problem is not None:
            problem = lab.run_gradients(case).problem
            return problem is not None and problem.kind == failing.problem.kind
        judged = lab.judge_gradients(case)
        return judged.failing == failing.failing and not judged.nonfinite

    best = _smallest(lab, failing.case, fails, MOST_GRADIENT_ATTEMPTS)
    return failing if best is failing.case else lab.judge_gradients(best)


def _smallest(lab: Laboratory, case: Case, fails: Callable[[Case], bool], attempts: int) -> Case:
    """Each move is repeated while it helps; passes over all moves go on until one changes nothing."""
    search = _Search(lab, fails, case, attempts)
    before = None
    while before is not search.best and search.left:
        before = search.best
        for move in _MOVES:
            while search.try_any(move(search.best, lab)):
                pass
    return search.best


@dataclass
class _Search:
    """The best case so far and the attempts left."""

    lab: Laboratory
    fails: Callable[[Case], bool]
    best: Case
    left: int

    def try_any(self, candidates: Iterator[Case]) -> bool:
        """Take the first candidate that fails in the same way."""
        for case in candidates:
            if not self.left:
                return False
            if not self.lab.accepts(case) or _same(case, self.best):
                continue
            self.left -= 1
            if self.fails(case):
                self.best = case
                return True
        return False


def _bare_symptom(outcome: Outcome) -> tuple[str, ...]:
    if outcome.problem is not None:
        return (outcome.problem.kind,)
    arrays = [a for a in (outcome.output, outcome.final_state) if a is not None]
    return () if all(np.isfinite(a).all() for a in arrays) else _NOT_FINITE


def _same(a: Case, b: Case) -> bool:
    mine, other = a.arrays(), b.arrays()
    return mine.keys() == other.keys() and all(np.array_equal(x, other[name]) for name, x in mine.items())


def _one_sequence(case: Case, lab: Laboratory) -> Iterator[Case]:
    for b in range(case.shape.B if case.shape.B > 1 else 0):
        yield _part(case, sequences=[b])


def _one_head(case: Case, lab: Laboratory) -> Iterator[Case]:
    for h in range(case.shape.HV if case.shape.HV > 1 else 0):
        yield _part(case, heads=[h])


def _fewer_tokens(case: Case, lab: Laboratory) -> Iterator[Case]:
    total = case.shape.T
    for tokens in sorted({lab.length(n) for n in (1, 2, total // 4, total // 2, total - 1)}):
        if tokens < total:
            yield case.slice(0, tokens, case.initial_state)


def _later_start(case: Case, lab: Laboratory) -> Iterator[Case]:
    total = case.shape.T
    for start in sorted({total - lab.length(n) for n in (2, total // 2, total - 1)}, reverse=True):
        if 0 < start < total:
            yield case.slice(start, total, case.initial_state)


def _fewer_values(case: Case, lab: Laboratory) -> Iterator[Case]:
    for count in sorted({n for n in (1, 2, 4, case.shape.V // 2) if 0 < n < case.shape.V}):
        yield _part(case, values=count)


def _fewer_channels(case: Case, lab: Laboratory) -> Iterator[Case]:
    for count in sorted({n for n in (1, 2, 4, case.shape.K // 2) if 0 < n < case.shape.K}):
        yield _part(case, channels=count)


_MOVES: tuple[Callable[[Case, Laboratory], Iterator[Case]], ...] = (
    _one_sequence,
    _one_head,
    _fewer_tokens,
    _later_start,
    _fewer_values,
    _fewer_channels,
    lambda case, lab: simpler(case),
)


def _part(
    case: Case,
    sequences: list[int] | None = None,
    heads: list[int] | None = None,
    values: int | None = None,
    channels: int | None = None,
) -> Case:
    """Some sequences, output heads (each with its own lent head), value columns or key channels."""
    s = case.shape
    sequences = list(range(s.B)) if sequences is None else sequences
    value_heads = list(range(s.HV)) if heads is None else heads
    lent_heads = list(range(s.H)) if heads is None else [h // (s.HV // s.H) for h in heads]
    v, k = values or s.V, channels or s.K

    def take(array: Array, chosen: list[int]) -> Array:
        return array[sequences][:, :, chosen]

    kept = {
        field: take(array, lent_heads if field in case.kind.shared else value_heads)
        for field, array in case.arrays().items()
        if field != "initial_state"
    }
    widths = {"q": k, "k": k, "v": v}
    widths |= {name: {"channel": k, "value": v}[per] for name, per in case.kind.entries if per != "head"}
    for field, width in widths.items():
        kept[field] = kept[field][..., :width]
    state = case.initial_state
    return case.replace(
        **kept,
        initial_state=None if state is None else state[sequences][:, value_heads][..., :k, :v],
        scale=case.kind.scale(k) if case.scale == case.kind.scale(s.K) else case.scale,
    )
