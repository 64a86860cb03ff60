"""A faulty kernel gives a finding, never an exception, and the next case runs."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from verify.audit.case import Case, Outcome
from verify.audit.convention.convention import Convention
from verify.audit.subject import rawbits
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model.errors import EnvironmentProblem, RequestError

FAULTY = Path(__file__).with_name("misbehaving.py")
CONVENTION = Convention("fla", "gdn", extra={"output_final_state": True})
STATE = np.arange(12.0).reshape(1, 1, 3, 4)


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    target = Target.parse(f"{FAULTY}:misbehave")
    with Subject(target, CONVENTION, memory_limit_gib=2) as running:
        yield running


def case(dtype: str = "float32", v: np.ndarray | None = None, state: np.ndarray | None = STATE) -> Case:
    if v is None:
        v = np.arange(12.0).reshape(1, 3, 1, 4)
    tokens, values = v.shape[1], v.shape[3]
    if state is not None and state.shape[-1] != values:
        state = None
    return Case(
        mechanism="gdn",
        name="case",
        seed=0,
        dtype=dtype,
        q=np.ones((1, tokens, 1, 3)),
        k=np.ones((1, tokens, 1, 3)),
        v=v,
        g=-np.arange(float(tokens)).reshape(1, tokens, 1),
        beta=np.ones((1, tokens, 1)),
        initial_state=state,
        scale=0.1,
    )


def run(subject: Subject, behaviour: str, given: Case | None = None, **convention: object) -> Outcome:
    extra = {"output_final_state": True, "behaviour": behaviour}
    subject.convention = dataclasses.replace(CONVENTION, **{"extra": extra, **convention})
    return subject.run(given or case())


def assert_healthy(subject: Subject) -> None:
    outcome = run(subject, "copy")
    assert outcome.problem is None
    assert np.array_equal(outcome.output, case().v)
    assert np.array_equal(outcome.final_state, STATE)
    assert (outcome.output_dtype, outcome.state_dtype) == ("float32", "float32")


def test_identity(subject: Subject) -> None:
    identity = subject.identity
    assert identity["requested"] == f"{FAULTY}:misbehave"
    assert (identity["module"], identity["qualname"]) == (str(FAULTY), "misbehave")
    assert identity["source_file"] == str(FAULTY)
    assert len(identity["source_sha256"]) == 64
    assert (identity["is_wrapper"], identity["dispatches_to"], identity["triton"]) == (False, None, False)


@pytest.mark.parametrize(
    ("behaviour", "kind", "message"),
    [
        ("raise", "raised", "RuntimeError: cannot do (1, 3, 1, 4) (misbehaving.py:"),
        ("sys-exit", "raised", "SystemExit: 3"),
        ("allocate", "memory", "ran out of its 2 GiB of memory: RuntimeError"),
        ("one", "wrong-return", "returned a Tensor; the convention says it returns a pair"),
        ("three", "wrong-return", "returned 3 values"),
        ("no-state", "wrong-return", "final_state = NoneType, not a tensor"),
        ("list", "wrong-return", "output = list, not a tensor"),
        ("meta", "wrong-return", "the returned tensors cannot be read"),
        ("unheard-of", "wrong-return", "returned a NoneType"),
        (
            "shape",
            "wrong-shape",
            "output came back with shape (1, 2, 1, 4); the convention says (1, 3, 1, 4)",
        ),
        ("state-shape", "wrong-shape", "final_state came back with shape (1, 1, 4, 3)"),
        ("dtype", "wrong-dtype", "output came back in float64; the convention says float32"),
        ("integers", "wrong-dtype", "output came back in int64"),
        ("state-dtype", "wrong-dtype", "final_state came back in float16; the convention says float32"),
        ("mutate", "inputs-mutated", "input 'beta': element [0, 1, 0] went from 1.0 to 0.25"),
        ("resize", "inputs-mutated", "input 'k' from shape (1, 3, 1, 3)"),
        ("exit", "killed", "ended its process with exit status 7; it last printed: leaving now"),
        ("segfault", "killed", "was killed by SIGSEGV"),
    ],
)
def test_a_fault_is_reported_and_the_next_case_runs(
    subject: Subject, behaviour: str, kind: str, message: str
) -> None:
    outcome = run(subject, behaviour)
    assert outcome.problem is not None
    assert outcome.problem.kind == kind
    assert message in outcome.problem.message
    assert_healthy(subject)


def test_a_hang_is_ended_and_the_next_case_runs(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subject, "time_limit_s", 0.7)
        problem = run(subject, "hang").problem
    assert problem is not None
    assert problem.kind == "timeout"
    assert problem.message == "no result within the time limit of 0.7 s; it last printed: about to hang"
    assert_healthy(subject)


def test_arrays_are_kept_when_only_an_input_or_a_dtype_is_wrong(subject: Subject) -> None:
    for behaviour in ("mutate", "dtype"):
        outcome = run(subject, behaviour)
        assert np.array_equal(outcome.output, case().v)
        assert np.array_equal(outcome.final_state, STATE)
    assert run(subject, "integers").output is None


@pytest.mark.parametrize("behaviour", ["print", "fork"])
def test_printing_and_forking_do_not_disturb_the_answers(subject: Subject, behaviour: str) -> None:
    assert run(subject, behaviour).problem is None
    for value in (5.0, 6.0):
        given = case(v=np.full((1, 3, 1, 4), value))
        assert np.array_equal(run(subject, "copy", given).output, given.v)


def test_nan_and_unwritten_memory_come_back_as_nan(subject: Subject) -> None:
    assert np.isnan(run(subject, "nan").output).all()
    unwritten = np.isnan(run(subject, "unwritten").output)
    assert unwritten[:, 0].all()
    assert not unwritten[:, 1:].any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_16_bit_value_survives_the_round_trip(subject: Subject, dtype: str) -> None:
    raw = np.arange(2**16, dtype="<u2").tobytes()
    values = rawbits.decode(raw, dtype, (1, 256, 1, 256))
    outcome = run(subject, "copy", case(dtype, v=values))
    assert outcome.problem is None
    assert outcome.output_dtype == dtype
    assert np.array_equal(outcome.output, values, equal_nan=True)
    numbers = ~np.isnan(values)
    assert np.array_equal(np.signbit(outcome.output)[numbers], np.signbit(values)[numbers])


def test_scalars_gates_threads_and_empty_cases_arrive(subject: Subject) -> None:
    double = case("float64").replace(scale=0.1)
    assert np.array_equal(
        run(subject, "scale", double, state_dtype="float64").output, np.full((1, 3, 1, 4), 0.1)
    )
    assert run(subject, "threads").output.max() == 1.0
    one_value = case(v=np.zeros((1, 3, 1, 1)))
    gates = run(subject, "gate", one_value, gate_space="linear").output.ravel()
    assert np.array_equal(gates, np.exp([0.0, -1.0, -2.0]).astype(np.float32))
    empty = run(subject, "copy", case(v=np.zeros((1, 0, 1, 4))))
    assert empty.problem is None
    assert empty.output.shape == (1, 0, 1, 4)


def test_a_value_major_state_is_transposed_both_ways(subject: Subject) -> None:
    outcome = run(subject, "layout", state_layout="VK")
    assert outcome.problem is None
    assert np.array_equal(outcome.final_state, STATE)


def test_arguments_named_positional_go_by_position(subject: Subject) -> None:
    arguments = {**CONVENTION.arguments, "q": "query", "k": "key", "v": "value"}
    assert run(subject, "copy", arguments=arguments, positional=("q", "k", "v")).problem is None
    by_keyword = run(subject, "copy", arguments=arguments).problem
    assert by_keyword is not None
    assert "unexpected keyword argument 'query'" in by_keyword.message


def test_the_output_alone(subject: Subject) -> None:
    outcome = run(subject, "one", returns="output")
    assert outcome.problem is None
    assert np.array_equal(outcome.output, case().v)
    assert outcome.final_state is None


def test_a_case_outside_the_convention_is_refused(subject: Subject) -> None:
    with pytest.raises(RequestError, match="T = 3 is not a multiple of 2"):
        run(subject, "copy", length_multiple=2)


def test_a_wrapper_says_where_it_leads() -> None:
    with Subject(Target.parse(f"{FAULTY}:replaced"), CONVENTION) as wrapper:
        assert wrapper.identity["is_wrapper"]
        assert wrapper.identity["dispatches_to"] == "_audited_misbehaving:implementation"
        assert np.array_equal(wrapper.run(case()).output, case().v + 1)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("def g(): pass", RequestError, "has no 'f'; it has: g"),
        ("import no_such_dependency", EnvironmentProblem, "No module named 'no_such_dependency'"),
        ("import os; print('bye'); os._exit(4)", EnvironmentProblem, "exit status 4"),
        ("def f(): pass", EnvironmentProblem, "cannot import torch: ImportError: not here"),
    ],
)
def test_a_target_that_cannot_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    (tmp_path / "kernel.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(error, match=message):
        Subject(Target.parse(f"{tmp_path / 'kernel.py'}:f"), CONVENTION)


def test_an_import_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("import time; time.sleep(1000)")
    with pytest.raises(EnvironmentProblem, match=r"took longer than 0\.5 s"):
        Subject(Target.parse(f"{tmp_path / 'kernel.py'}:f"), CONVENTION, start_limit_s=0.5)


def test_another_interpreter_without_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker needs torch only, and does not answer the target's imports with its own modules."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('no numpy', name='numpy')")
    (tmp_path / "tensors.py").write_text("plus = 2")
    (tmp_path / "kernel.py").write_text(
        "import tensors\ndef f(v, initial_state, **rest):\n    return v + tensors.plus, initial_state"
    )
    python = tmp_path / "other-python"
    python.write_text(f'#!/bin/sh\necho used > "{tmp_path}/used"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Subject(Target.parse(f"{tmp_path / 'kernel.py'}:f"), CONVENTION, python=str(python)) as other:
        outcome = other.run(case("bfloat16"))
    assert outcome.problem is None
    assert np.array_equal(outcome.output, case().v + 2)
    assert (tmp_path / "used").exists()


def test_bad_requests() -> None:
    target = Target.parse(f"{FAULTY}:misbehave")
    with pytest.raises(RequestError, match="no Python interpreter 'no-such-python'"):
        Subject(target, CONVENTION, python="no-such-python")
    with pytest.raises(RequestError, match="time limit must be positive, got 0"):
        Subject(target, CONVENTION, time_limit_s=0)
