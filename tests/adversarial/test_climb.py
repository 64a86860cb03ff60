"""The search that climbs: finds what its start hides, flags no correct kernel, counts what it could reach."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from calling import InProcess, loaded
from fault import Fault

from verify.audit.bench import Bench
from verify.audit.case import Case, Shape
from verify.audit.inputs.cells import cell_of
from verify.audit.judge import Yardstick
from verify.audit.laboratory import Laboratory
from verify.audit.mechanism import MECHANISMS
from verify.audit.search import climb as climbing
from verify.audit.search.climb import Effort, climb, climbs, pressure
from verify.audit.search.moves import Limits, draw_moves

SHAPE = Shape(B=1, T=7, H=1, HV=2, K=4, V=3)
EFFORT = Effort(starts=1, steps=6, moves=6, seconds=np.inf)
CAPPED = Fault("–", "queries capped", "capped_queries", "recurrent_gdn", ("random",), (), None)
RIGHT = Fault("–", "none", "correct", "recurrent_kda", ("random",), (), None)


class Counting(Bench):
    """A bench that records by how many comparisons every tolerance shares the false-alarm probability."""

    shares: list[tuple[int, int]] = []  # noqa: RUF012

    def yardstick(self, case: Case) -> Yardstick:
        self.shares.append((self.comparisons, self.runs))
        return super().yardstick(case)


def lab(fault: Fault, cache: Path) -> Laboratory:
    convention = fault.convention
    subject = InProcess(loaded(fault), convention)
    return Laboratory(subject, Counting(convention, 50, cache), fault.dtype)  # type: ignore[arg-type]


def start(fault: Fault, name: str = "random") -> Case:
    return cell_of(name, fault.mechanism, SHAPE, fault.dtype, True, 3)


def test_a_fault_that_its_start_hides_is_found(cache: Path) -> None:
    found = climb(lab(CAPPED, cache), start(CAPPED), EFFORT, EFFORT.reachable(1))
    assert not lab(CAPPED, cache).judge(found.start).failed
    assert found.pressures[0] < 4
    assert found.pressures[-1] > 20
    assert list(found.pressures) == sorted(found.pressures)
    assert found.best.failed
    assert found.best.case.name == "climbed"
    assert np.abs(found.best.case.q).max() > 10
    short = dataclasses.replace(EFFORT, steps=1)
    again, other = (climb(lab(CAPPED, cache), start(CAPPED), short, 1, seed=seed) for seed in (0, 1))
    assert again.pressures == found.pressures[:2]
    assert other.pressures != again.pressures


@pytest.mark.parametrize("name", ["gate-reset", "constant-key-0.97"])
def test_a_correct_kernel_is_not_flagged_wherever_it_climbs(name: str, cache: Path) -> None:
    found = climb(lab(RIGHT, cache), start(RIGHT, name), EFFORT, EFFORT.reachable(1))
    assert not found.best.failed
    assert found.tried > EFFORT.steps
    assert found.best.output is not None
    assert 0 < found.best.output.worst_ratio < 1


def test_the_tolerance_shares_the_probability_with_all_that_could_be_reached(cache: Path) -> None:
    own = lab(RIGHT, cache)
    judged = [own.judge(start(RIGHT)), own.judge(start(RIGHT, "gate-zero"))]
    Counting.shares.clear()
    (found,) = climbs(own, judged, dataclasses.replace(EFFORT, steps=1))
    assert Counting.shares == [(50 * 2 * (2**6 + 6 + 2), 192)]
    assert found.start.name in ("random", "gate-zero")
    failing = lab(CAPPED, cache)
    wrong = failing.judge(start(CAPPED).replace(q=2.0**12 * start(CAPPED).q))
    assert wrong.failed
    assert list(climbs(failing, [wrong], EFFORT)) == []


def test_no_more_cases_are_reached_than_counted(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Whatever the heights, a search of two steps of two moves comes to few of the cases counted for it."""
    own = lab(RIGHT, cache)
    effort = Effort(starts=1, steps=2, moves=2, seconds=np.inf)
    ends = set()
    for outcome in itertools.product((0.0, 1.0, 2.0), repeat=4):
        heights = iter([0.5, *outcome, *([9.0] * 4)])
        monkeypatch.setattr(climbing, "pressure", lambda lab, case, heights=heights: next(heights))
        search = climbing._Search(own, Limits.of(start(RIGHT)), start(RIGHT), next(heights))
        for step in range(effort.steps):
            search.step(draw_moves(start(RIGHT), np.random.default_rng([0, step]), effort.moves))
        ends.add(search.best.v.tobytes() + search.best.q.tobytes())
    assert 3 < len(ends) <= effort.reachable(1)


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_moves_keep_to_what_a_mechanism_promises(mechanism: str) -> None:
    case = cell_of("random", mechanism, SHAPE, "bfloat16", True, 5)
    limits, applied = Limits.of(case), 0
    for seed in range(6):
        for move in draw_moves(case, np.random.default_rng(seed), 20):
            other = move(case, limits)
            if other is None:
                continue
            applied += 1
            assert other.dtype == case.dtype
            assert (other.log_decay <= 0).all()
            assert other.strength.max() <= max(1.0, case.strength.max())
            lengths = [np.linalg.norm(x.k, axis=-1) for x in (case, other)]
            assert lengths[1] == pytest.approx(lengths[0], rel=0.01)
            if case.kind.directed:
                assert all((other.arrays()[f] == case.arrays()[f]).all() for f in ("g", "b"))
    assert applied > 40


def test_a_kernel_that_fails_is_the_highest_of_all(cache: Path) -> None:
    own = lab(RIGHT, cache)
    case = start(RIGHT)
    assert 0 < pressure(own, case) < 10
    broken = InProcess(lambda *_, **inputs: (inputs["v"] * np.nan, None), own.convention)
    assert pressure(Laboratory(broken, own.bench, "float32"), case) == np.inf  # type: ignore[arg-type]
