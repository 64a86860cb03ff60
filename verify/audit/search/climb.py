"""A search that climbs: from the input where a kernel comes closest to its tolerance, to where it is closer.

Every step tries a few moves, the improving ones also together, and goes on from the best. What is climbed
is the error in proportion to a prediction from few runs of the model; only the case that is reached is
judged, by a tolerance of its own.

Moves are steps along one kind of input at a time, and both sides of one random direction in all entries at
once, whose better side is an ascent by simultaneous perturbation (Spall, IEEE Trans. Automatic Control 37,
1992). The kernel is not differentiated: a direction that follows its own rounding errors is one of a
continuum, and no count of the cases that can be reached, as below, would hold.

False alarms. That case was chosen because its error is large, so its tolerance must hold for every case that
the search could have chosen. Moves are drawn from the seed and the step, so where a climb gets depends on
nothing but the start and, per step, on which of m moves improve and which case of the m and their composition
is best: at most 2^m + m + 1 continuations. From one of C cells, d steps so reach at most C (2^m + m + 2)^d
cases. Each case, taken alone, exceeds its tolerance with no more than the stated probability; by the union
bound over all of them, the one that is chosen does so with at most that many times it. The probability is
therefore divided by that number, and more runs of the model keep the tolerance from growing with it.
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Case
from verify.audit.judge import Judgement, judge
from verify.audit.laboratory import Laboratory
from verify.audit.reference.results import float64_reference
from verify.audit.search.moves import Limits, Move, draw_moves
from verify.audit.tolerance.predicted.bounds import row_errors
from verify.audit.tolerance.predicted.prediction import Algorithm, predict
from verify.model.errors import RequestError

NAME = "climbed"
_SEARCH_RUNS = 8
_JUDGE_RUNS = 192
_LARGEST = 100_000
"""Multiplications of a start; larger ones would take the time of many smaller."""


@dataclass(frozen=True)
class Effort:
    """How far a search goes.

    Args:
        starts: climbs, each from another class.
        steps: of each climb, d.
        moves: tried per step, m.
        seconds: after which no further step is begun.
    """

    starts: int
    steps: int
    moves: int
    seconds: float

    def reachable(self, cells: int) -> int:
        """How many cases searches from ``cells`` possible starts could come to."""
        continuations: int = 2**self.moves + self.moves + 2
        return max(cells, 1) * int(continuations**self.steps)


EFFORTS = {"standard": Effort(2, 8, 6, 60.0), "thorough": Effort(8, 12, 8, 900.0)}
"""By budget; the others do not climb."""


@dataclass(frozen=True, eq=False)
class Climb:
    """What one climb came to.

    Args:
        start: the case it began with.
        best: where it got, judged by its own tolerance.
        pressures: error over predicted deviation at the start and after every step.
        tried: how often the kernel was run.
    """

    start: Case
    best: Judgement
    pressures: tuple[float, ...]
    tried: int


def climbs(lab: Laboratory, judged: Sequence[Judgement], effort: Effort, seed: int = 0) -> Iterator[Climb]:
    """One climb from the worst cell of each of the worst classes; none where a cell fails already.

    Args:
        lab: its bench counts these climbs as one comparison.
        judged: the cells to choose from.
        effort: how far to go.
        seed: of the moves.
    """
    usable = [j for j in judged if j.output is not None and _climbable(j)]
    if any(j.failed for j in judged):
        return
    worst: dict[str, Judgement] = {}
    for j in sorted(usable, key=_ratio, reverse=True):
        worst.setdefault(j.case.name, j)
    reachable = effort.reachable(len(judged))
    end = time.monotonic() + effort.seconds
    for start in list(worst.values())[: effort.starts]:
        yield climb(lab, start.case, effort, reachable, seed, end)


def climb(
    lab: Laboratory, start: Case, effort: Effort, reachable: int, seed: int = 0, end: float = np.inf
) -> Climb:
    """Climb from one case; ``reachable`` cases share the false-alarm probability of one comparison."""
    search = _Search(lab, Limits.of(start), start, pressure(lab, start))
    pressures, last = [search.height], None
    for step in range(effort.steps):
        if time.monotonic() >= end or not np.isfinite(search.height):
            break
        rng = np.random.default_rng([seed, step])
        moves = draw_moves(start, rng, effort.moves - (last is not None))
        last = search.step([*([last] if last is not None else []), *moves])
        pressures.append(search.height)
    runs = max(_JUDGE_RUNS, lab.bench.runs)
    bench = dataclasses.replace(lab.bench, comparisons=lab.bench.comparisons * reachable, runs=runs)
    best = search.best.replace(name=NAME)
    judgement = judge(best, lab.run(best), bench.yardstick(best))
    return Climb(start, judgement, tuple(pressures), search.tried)


@dataclass
class _Search:
    """Where a climb is."""

    lab: Laboratory
    limits: Limits
    best: Case
    height: float
    tried: int = 1

    def step(self, moves: Sequence[Move]) -> Move | None:
        """Go to the best of the moves and of all improving ones together; the move, if one alone is best."""
        origin, height = self.best, self.height
        improving, best = [], None
        for move in moves:
            found = self._height(move(origin, self.limits))
            if found > height:
                improving.append(move)
            if self._take(move(origin, self.limits), found):
                best = move
        together: Case | None = origin
        for move in improving if len(improving) > 1 else ():
            together = None if together is None else move(together, self.limits)
        if together is not origin and self._take(together, self._height(together)):
            best = None
        return best

    def _height(self, case: Case | None) -> float:
        """-inf where there is no case, or the kernel does not promise to take it."""
        if case is None or not self.lab.accepts(case):
            return -np.inf
        self.tried += 1
        return pressure(self.lab, case)

    def _take(self, case: Case | None, height: float) -> bool:
        if case is None or height <= self.height:
            return False
        self.best, self.height = case, height
        return True


def pressure(lab: Laboratory, case: Case) -> float:
    """Largest error of a row over its predicted deviation, from a few runs of the model.

    Infinite for a kernel that fails or gives values that are not finite; -inf where a correct result does not
    fit the output's format.
    """
    c = lab.convention
    seen, algorithm = c.as_seen(case), Algorithm.of(c, case.dtype)
    try:
        reference = float64_reference(seen)
        prediction = predict(seen.with_finite_gates(), reference, algorithm, runs=_SEARCH_RUNS)
    except RequestError:
        return -np.inf
    outcome = lab.run(case)
    if outcome.problem is not None:
        return np.inf
    worst = 0.0
    predicted = (prediction.output, prediction.state)
    bounds = (reference.output_error, reference.state_error)
    for error, deviation, bound in zip(row_errors(outcome, reference), predicted, bounds, strict=True):
        if error is None:
            continue
        if not np.isfinite(error).all():
            return np.inf
        beyond = np.maximum(error - bound, 0.0)
        ratio = np.divide(beyond, deviation, out=np.zeros_like(beyond), where=deviation > bound)
        worst = max(worst, float(ratio.max(initial=0.0)))
    return worst


def _climbable(judgement: Judgement) -> bool:
    s = judgement.case.shape
    small = 0 < s.B * s.T * s.HV * s.K * s.V <= _LARGEST
    return small and judgement.yardstick.kind != "exact"


def _ratio(judgement: Judgement) -> float:
    return max(m.worst_ratio for m in (judgement.output, judgement.state) if m is not None)
