"""The reference asked for is the one that judges, and the certificate says which one did."""

import copy

import numpy as np
import pytest

from verify.audit.bench import Bench
from verify.audit.case import Outcome, Shape
from verify.audit.certify import certify
from verify.audit.convention.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.judge import judge
from verify.audit.properties.basic import confirmed_reference
from verify.audit.reference import ball
from verify.audit.reference.account import account
from verify.audit.reference.levels import LEVELS
from verify.checkers.kernel_certificate import recheck
from verify.model.verdict import Verdict

KINDS = {kind.name: kind for kind in REAL_CLASSES}
SHAPE = Shape(B=1, T=5, H=1, HV=2, K=3, V=2)


def drawn(name, mechanism="kda"):
    return draw_case(KINDS[name], mechanism, SHAPE, dtype="float32", seed=1, with_state=True)


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_judges(level):
    """A correct result passes at every level and a wrong one at none; the cell says who judged."""
    case = drawn("gate-zero")
    bench = Bench(Convention.load("ours", "kda"), 1, reference=level, runs=4)
    yardstick = bench.yardstick(case)
    wrong = yardstick.output + 2 * yardstick.output_tolerance.max()
    for output, failed in ((yardstick.output.astype(np.float32), False), (wrong, True)):
        outcome = Outcome(output, yardstick.state, "float32", "float32", None, 0.0)
        judgement = judge(case, outcome, yardstick)
        assert judgement.failed is failed
    cell = judgement.cell()
    assert cell["reference"] == {"exact": "rational"}.get(level, level)
    assert (cell["digits"] is not None) == (level == "mpmath")
    gradients = bench.gradient_yardstick(case)
    assert gradients.kind == cell["reference"]


@pytest.fixture(scope="module")
def made():
    return certify(
        "kernels.gdn.recurrent:recurrent_gdn",
        "gdn",
        classes=["random", "gate-zero"],
        reference="exact",
    )


def test_the_certificate_says_which_reference_judged(made):
    said = made["reference"]
    assert said["asked"] == "exact"
    assert set(said["used"]) == {"rational", "ball"}
    assert sum(said["used"].values()) == len(made["cells"])
    assert [note["cells"] for note in said["notes"]] == [said["used"]["ball"]]
    assert {sample["reference_kind"] for sample in made["samples"]} == {"rational", "ball"}
    assert recheck(made) == []


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (lambda data: data["reference"]["used"].update(ball=1), "are said to judge"),
        (lambda data: _of(data, "ball").update(reference_note=None), "without a reason"),
        (lambda data: data["reference"].update(asked="float64"), "without a reason"),
        (
            lambda data: data["reference"].update(digits={"output": {"fewest": 31.0, "median": 31.0}}),
            "digits are said to stand",
        ),
    ],
)
def test_an_edit_of_what_is_said_is_found(made, edit, fault):
    edited = copy.deepcopy(made)
    edit(edited)
    assert any(fault in found for found in recheck(edited))


def _of(data, level):
    return next(cell for cell in data["cells"] if cell["reference"] == level)


def test_the_option_and_the_marker_hand_the_reference_on(monkeypatch, tmp_path):
    from verify import pytest_plugin
    from verify.audit import certify as module
    from verify.audit.record import finished
    from verify.cli.certify import certify as command

    class Enough(Exception):
        pass

    asked = []

    def certified(request, *arguments, **options):
        asked.append(request.reference)
        raise Enough

    def certifying(*arguments, **options):
        asked.append(options["reference"])
        raise Enough

    monkeypatch.setattr(finished, "certified", certified)
    with pytest.raises(Enough):
        command("a.py:f", "kda", reference="ball", results=tmp_path)
    monkeypatch.setattr(module, "certify", certifying)
    request = pytest_plugin.Request("a.py:f", "kda", reference="mpmath")
    with pytest.raises(Enough):
        pytest_plugin._make(pytest_plugin.Part(request, "float32", "class", "random"), None, tmp_path, False)
    assert asked == ["ball", "mpmath"]


def test_where_a_climb_gets_is_judged_by_the_same_reference():
    from verify.audit.certify import _by
    from verify.audit.search.climb import Climb

    case = drawn("gate-zero")
    benches = {
        level: Bench(Convention.load("ours", "kda"), 1, reference=level, runs=4)
        for level in ("float64", "exact")
    }
    yardstick = benches["float64"].yardstick(case)
    outcome = Outcome(yardstick.output, yardstick.state, "float32", "float32", None, 0.0)
    climb = Climb(case, judge(case, outcome, yardstick), (1.0,), 1)
    assert _by(benches["float64"], climb) is climb
    again = _by(benches["exact"], climb).best
    assert again.yardstick.kind == "rational"
    assert again.outcome is outcome
    assert not again.failed


def test_digits_of_gradients_are_told_from_those_of_outputs():
    def entry(part, fewest, **more):
        digits = {"state": {"fewest": fewest, "median": fewest + 1}}
        return {"reference": "mpmath", "reference_note": None, "digits": digits, part: {}, **more}

    lost = {"reference": None, "output": None}
    said = account("mpmath", [entry("output", 9), entry("output", 7), lost], [entry("inputs", 5)])
    assert said["used"] == {"mpmath": 3}
    assert said["digits"] == {
        "state": {"fewest": 7, "median": 8},
        "gradient of state": {"fewest": 5, "median": 6},
    }
    assert said["most_digits"] == 31.9


def test_notes_of_one_reason_are_counted_together():
    notes = ["too large for ball: 9", "irrational exponentials: exp(1)", "too large for ball: 7", None]
    cells = [{"reference": "ball", "reference_note": note, "digits": None, "output": {}} for note in notes]
    assert account("exact", cells, [])["notes"] == [
        {"cells": 2, "note": "too large for ball: 9"},
        {"cells": 1, "note": "irrational exponentials: exp(1)"},
    ]


def test_what_is_confirmed_is_the_reference_that_judged(monkeypatch):
    """A reference with too small an error is a fault of this tool, and leaves the kernel undecided."""
    case = drawn("gate-zero")
    bench = Bench(Convention.load("ours", "kda"), 1, reference="ball", runs=4)
    yardstick = bench.yardstick(case)
    outcome = Outcome(yardstick.output, yardstick.state, "float32", "float32", None, 0.0)
    judgements = [judge(case, outcome, yardstick)]
    assert confirmed_reference(judgements, bench).verdict is Verdict.SAMPLED
    right = ball.near
    monkeypatch.setattr(ball, "near", lambda x: (right(x)[0], right(x)[1] / 4))
    assert confirmed_reference(judgements, bench).verdict is Verdict.UNDECIDED
