"""Each property of other arrangements finds a fault that every other property misses."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import BROKEN

from verify.audit.bench import Bench
from verify.audit.convention.convention import Convention
from verify.audit.laboratory import Laboratory
from verify.audit.properties import arrangements, equivalences, invariances
from verify.audit.properties.basic import Property
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model.verdict import Verdict

CHECKS: dict[str, Callable[[Laboratory], Property]] = {
    "batch permutation": arrangements.batch_permutation,
    "head permutation": arrangements.head_permutation,
    "batch invariance": arrangements.batch_invariance,
    "memory around inputs": arrangements.memory_around_inputs,
    "expanded inputs": arrangements.expanded_inputs,
    "absent inputs": arrangements.absent_inputs,
    "special cases": equivalences.special_cases,
    "chunk sizes": equivalences.chunk_sizes,
    "no tokens": equivalences.no_tokens,
    "strided inputs": invariances.strided_inputs,
    "repeated run": invariances.repeated_run,
}
FAULTS = {
    "order of the batch": ("gdn", "batch permutation", "other bits"),
    "first head": ("gdn", "head permutation", "other bits"),
    "one sequence": ("gdn", "batch invariance", "other bits"),
    "one row too many": ("gdn", "memory around inputs", "wrong numbers"),
    "stride 0": ("gdn", "expanded inputs", "wrong numbers"),
    "no gate": ("gdn", "absent inputs", "wrong numbers"),
    "fast path": ("kda", "special cases", "equal gates in all channels"),
    "small chunks": ("gdn", "chunk sizes", "a chunk size gives wrong numbers"),
    "no tokens": ("gdn", "no tokens", "T = 0 loses the state"),
}


def convention(fault: str, mechanism: str, *, invariant: bool = True) -> Convention:
    form = "chunked" if fault == "small chunks" else "recurrent"
    declared = Convention.load("ours", mechanism, f"{form}_{mechanism}")
    return dataclasses.replace(
        declared,
        cu_seqlens="",
        extra={**declared.extra, "fault": fault},
        optional=("g",) if mechanism == "gdn" and form == "recurrent" else (),
        batch_invariant=invariant,
        chunk_argument="chunk_size",
        chunk_size=16 if form == "chunked" else None,
        chunk_sizes=(3, 32),
    )


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    """One worker for all faults, which are chosen by an argument."""
    with Subject(Target.parse(f"{BROKEN / 'arranged'}.py:call"), convention("none", "gdn")) as started:
        yield started


def checked(subject: Subject, declared: Convention, cache: Path) -> dict[str, Property]:
    subject.convention = declared
    lab = Laboratory(subject, Bench(declared, 100, cache), "float32")
    return {name: check(lab) for name, check in CHECKS.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_property_finds_it(fault: str, subject: Subject, cache: Path) -> None:
    mechanism, expected, reason = FAULTS[fault]
    found = checked(subject, convention(fault, mechanism), cache)
    assert [name for name, p in found.items() if p.verdict is Verdict.REFUTED] == [expected]
    finding = found[expected].finding
    # A cell that fails by itself leaves the reason to the diagnosis.
    assert reason in (found[expected].detail if finding is None else finding.reason)
    assert (finding is None) == bool(found[expected].failing)
    assert Verdict.UNDECIDED not in [p.verdict for p in found.values()]


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
def test_none_is_found_where_there_is_none(mechanism: str, subject: Subject, cache: Path) -> None:
    found = checked(subject, convention("none", mechanism), cache)
    assert {p.verdict for p in found.values()} <= {Verdict.SAMPLED, None}
    held = {name for name, p in found.items() if p.verdict is Verdict.SAMPLED}
    absent = {"gdn": {"chunk sizes"}, "kda": {"chunk sizes", "absent inputs"}}[mechanism]
    assert held == CHECKS.keys() - absent
    for name in ("batch permutation", "head permutation", "batch invariance", "memory around inputs"):
        assert "bit for bit" in found[name].detail


@pytest.mark.parametrize("fault", ["order of the batch", "first head", "one sequence"])
def test_other_bits_are_told_and_no_fault_where_none_are_promised(
    fault: str, subject: Subject, cache: Path
) -> None:
    found = checked(subject, convention(fault, "gdn", invariant=False), cache)
    assert {p.verdict for p in found.values()} <= {Verdict.SAMPLED, None}
    told = found[FAULTS[fault][1]].detail
    assert "not bit for bit" in told
    assert "of the tolerance" in told


def test_a_refused_empty_call_is_no_fault(subject: Subject, cache: Path) -> None:
    declared = dataclasses.replace(convention("none", "gdn"), supports_empty=False)
    assert checked(subject, declared, cache)["no tokens"].verdict is None
