"""The journal of a certification: values come back bit for bit, and a crash at any moment loses no step."""

import dataclasses
import json
import subprocess
import sys
import time

import numpy as np
import pytest

from verify.audit.bench import Bench
from verify.audit.case import Outcome, Problem
from verify.audit.convention.convention import Convention
from verify.audit.inputs.probes import probe
from verify.audit.judge import judge
from verify.audit.laboratory import Finding
from verify.audit.mechanism import MECHANISMS
from verify.audit.properties.basic import Property
from verify.audit.record import codec
from verify.audit.record.finished import certified
from verify.audit.record.journal import NAME, Journal
from verify.audit.request import Request
from verify.audit.search.climb import Climb
from verify.model.verdict import Verdict

DEPENDS = {"the kernel": "1", "the request": "2"}


def opened(path, depends=DEPENDS, resume=True):
    said = []
    return Journal(path, depends, resume, said.append), said


def written(path, steps):
    with opened(path)[0] as journal:
        for name, value in steps.items():
            assert journal.keep(name, lambda v=value: v) == value


def never():
    raise AssertionError("a kept step was computed again")


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, -0.0], [np.inf, np.nan]]),
        np.array([1.5, 2.0**-140, -0.0, 3e38]),
        np.array([1e300, 1.0]),
        np.zeros((2, 0, 3)),
        np.arange(6).reshape(2, 3),
        np.array([True, False]),
        np.arange(12.0).reshape(3, 4).T,
    ],
)
def test_arrays_come_back_bit_for_bit(array):
    again = codec.decode(codec.encode(array))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.flags["C_CONTIGUOUS"]
    assert again.tobytes() == np.ascontiguousarray(array).tobytes()


def test_values_keep_their_types_and_shared_arrays_stay_shared():
    shared = np.arange(3.0)
    problem = Problem("timeout", "no result")
    value = {
        "outcome": Outcome(shared, None, "float32", "", problem, 0.1, {"q": shared}),
        "property": Property("a", "b", Verdict.REFUTED, "d", Finding("r", "s", "t"), leaks=True),
        "plain": [1, 0.1, float("inf"), None, True, ("x", ("y",))],
        "scalar": np.float64(0.3),
    }
    again = codec.decode(codec.encode(value))
    assert again["outcome"].output is again["outcome"].gradients["q"]
    assert again["outcome"].problem == problem
    assert again["property"].verdict is Verdict.REFUTED
    assert again["property"].finding == Finding("r", "s", "t")
    assert again["plain"] == value["plain"]
    assert type(again["scalar"]) is float


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "kda", "dplr"])
def test_a_judged_case_comes_back_whole(mechanism):
    """Of mechanisms with every kind of field, as searches and properties keep them."""
    convention = Convention(name="any", mechanism=mechanism, form=MECHANISMS[mechanism].forms[0])
    if convention.form != "recurrent":
        convention = dataclasses.replace(convention, chunk_size=16, returns="output")
    case = probe(convention, "float32", 5, initial_state=True, grouped=True)
    yardstick = Bench(convention, 3, runs=2).yardstick(case)
    state = yardstick.state if case.kind.stateful else None
    outcome = Outcome(1.5 * yardstick.output, state, "float32", "float32", None, 0.25)
    found = Climb(case, judge(case, outcome, yardstick), (1.0, float("inf")), 3)
    again = codec.decode(codec.encode(found))
    assert again.pressures == found.pressures
    assert again.best.cell() == found.best.cell()
    assert again.best.failed
    assert again.start.arrays().keys() == case.arrays().keys()
    for field, array in case.arrays().items():
        assert np.array_equal(again.start.arrays()[field], array)


def test_only_plain_classes_of_this_package_are_made():
    with pytest.raises(TypeError):
        codec.encode({"a": object()})
    for name in ("subprocess:Popen", "http:HTTPStatus", "verify.audit.record.journal:Journal"):
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            codec.decode(json.dumps([{"class": name, "fields": {}}, []]))


def test_kept_steps_are_not_computed_again(tmp_path):
    path = tmp_path / NAME
    written(path, {"one": 1, "two": [2.5]})
    journal, said = opened(path)
    with journal:
        assert journal.keep("two", never) == [2.5]
        assert journal.keep("three", lambda: "new") == "new"
        assert journal.keep("one", never) == 1
    assert said == ["resuming: 2 steps were judged before"]
    with opened(path)[0] as journal:
        assert journal.steps == 3
        assert journal.keep("three", never) == "new"


def test_every_cut_keeps_all_whole_lines(tmp_path):
    path = tmp_path / NAME
    written(path, {"one": 1, "two": 2})
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in (*range(0, len(whole), 7), *ends, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with opened(path)[0] as journal:
            assert journal.steps == max(sum(end <= cut for end in ends) - 1, 0)
            journal.keep("two", lambda: 2)
            journal.keep("one", lambda: 1)
        with opened(path)[0] as journal:
            assert (journal.keep("one", never), journal.keep("two", never)) == (1, 2)


def test_an_edited_line_is_dropped_with_what_follows(tmp_path):
    path = tmp_path / NAME
    written(path, {"one": 1, "two": 2, "three": 3})
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"[2,', b'"[7,')
    path.write_bytes(b"".join(lines))
    with opened(path)[0] as journal:
        assert journal.keep("one", never) == 1
        assert journal.steps == 1
        assert journal.keep("two", lambda: 5) == 5


def test_a_journal_of_something_else_is_not_continued(tmp_path):
    path = tmp_path / NAME
    written(path, {"one": 1})
    journal, said = opened(path, {**DEPENDS, "the kernel": "3"})
    with journal:
        assert journal.keep("one", lambda: 4) == 4
    assert "the kernel changed" in said[0]
    assert "the request" not in said[0]


def test_without_resume_the_old_journal_stays_until_the_first_step_is_done(tmp_path):
    path = tmp_path / NAME
    written(path, {"one": 1})
    before = path.read_bytes()
    journal, said = opened(path, resume=False)
    with journal:
        assert "--resume" in said[0]
        assert path.read_bytes() == before
        assert journal.keep("one", lambda: 4) == 4
    with opened(path)[0] as again:
        assert again.keep("one", never) == 4


def test_a_failed_step_is_not_kept(tmp_path):
    path = tmp_path / NAME
    with opened(path)[0] as journal:
        with pytest.raises(ValueError, match="no luck"):
            journal.keep("one", lambda: int("no luck"))
        assert journal.steps == 0


def test_a_second_run_in_the_same_folder_keeps_nothing(tmp_path):
    path = tmp_path / NAME
    with opened(path)[0] as first:
        first.keep("one", lambda: 1)
        second, said = opened(path)
        with second:
            assert second.keep("one", lambda: 2) == 2
            assert "another run" in said[0]
            second.discard()
        assert first.keep("one", never) == 1
        assert path.exists()
        first.discard()
    assert not path.exists()


def test_an_interruption_says_how_to_continue(tmp_path):
    journal, said = opened(tmp_path / NAME)
    with pytest.raises(KeyboardInterrupt), journal:  # noqa: PT012
        journal.keep("one", lambda: 1)
        raise KeyboardInterrupt
    assert "1 judged steps are kept" in said[0]
    assert "--resume" in said[0]


KERNEL = """
import time
from pathlib import Path
from kernels.linear.recurrent import recurrent_linear as right
HERE = Path(__file__).parent

def recurrent_linear(*given, **options):
    with open(HERE / "calls", "a") as file:
        file.write("x")
    while (HERE / "calls").stat().st_size == {stop} and not (HERE / "gate").exists():
        time.sleep(0.02)
    return right(*given, **options)
"""
STOP = 25
RUN = """
from pathlib import Path
from verify.audit.record.finished import certified
from verify.audit.request import Request
certified(Request({target!r}, "linear", classes=("integer",)), Path({folder!r}), cache=Path({cache!r}))
"""


def test_after_a_kill_the_certificate_is_that_of_an_uninterrupted_run(tmp_path):
    """Killed for good while the kernel runs; nothing judged before is run again."""
    (tmp_path / "kernel.py").write_text(KERNEL.format(stop=STOP))
    calls, gate, cache = tmp_path / "calls", tmp_path / "gate", tmp_path / "predictions"
    target = f"{tmp_path / 'kernel.py'}:recurrent_linear"
    request = Request(target, "linear", classes=("integer",))

    code = RUN.format(target=target, folder=str(tmp_path / "killed"), cache=str(cache))
    process = subprocess.Popen([sys.executable, "-c", code])
    while not calls.exists() or calls.stat().st_size < STOP:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    gate.touch()
    kept = (tmp_path / "killed" / NAME).read_bytes().count(b"\n") - 1
    assert kept >= 5

    said = []
    resumed, _ = certified(request, tmp_path / "killed", cache=cache, resume=True, say=said.append)
    assert said == [f"resuming: {kept} steps were judged before"]
    run_again = calls.stat().st_size - STOP
    calls.unlink()
    fresh, cached = certified(request, tmp_path / "fresh", cache=None)
    assert not cached
    assert timeless(resumed) == timeless(fresh)
    assert run_again < calls.stat().st_size - kept + 1
    assert not (tmp_path / "killed" / NAME).exists()


def timeless(data):
    """A certificate as text, without times and the digest over them."""
    if isinstance(data, dict):
        return {name: timeless(x) for name, x in data.items() if name not in ("seconds", "digest")}
    return [timeless(x) for x in data] if isinstance(data, list) else repr(data)
