"""The faults of the catalogue: each refuted with its reasons, and not flagged where it does no harm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calling import called, loaded
from catalogue import FAULTS
from controls import CONTROLS
from fault import Fault

from verify.audit.bench import Bench
from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.gradient.judge import judge_gradients
from verify.audit.inputs.cells import cells
from verify.audit.judge import judge
from verify.audit.mechanism import MECHANISMS
from verify.checkers.kernel_certificate import recheck
from verify.model.verdict import Verdict


def number(fault: Fault) -> str:
    return f"{fault.number}-{fault.file}"


def test_every_fault_is_in_the_catalogue_once() -> None:
    numbers = [fault.number for fault in FAULTS]
    assert len(numbers) == len(set(numbers)) == 28
    assert all(fault.classes and fault.reasons and fault.hides for fault in FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=number)
def test_a_fault_is_refuted_with_its_reasons(fault: Fault, certified: Callable[..., dict[str, Any]]) -> None:
    result = certified(
        fault.target,
        fault.mechanism,
        fault.convention,
        dtype=fault.dtype,
        classes=fault.classes,
        gradients=fault.gradients,
    )
    assert result["verdict"] == "refuted"
    assert tuple(finding["reason"] for finding in result["findings"]) == fault.reasons
    assert recheck(result) == []
    if fault.gradients or fault.packed:
        assert {cell["verdict"] for cell in result["cells"]} == {"sampled"}


@pytest.mark.parametrize("kernel", CONTROLS, ids=lambda kernel: f"{kernel.file}-{kernel.function}")
def test_a_correct_kernel_is_not_flagged(kernel: Fault, certified: Callable[..., dict[str, Any]]) -> None:
    result = certified(
        kernel.target,
        kernel.mechanism,
        kernel.convention,
        classes=kernel.classes,
        gradients=kernel.gradients,
    )
    assert result["verdict"] == "sampled", result["summary"]
    assert bool(result["gradients"]) is kernel.gradients


@pytest.mark.parametrize("mechanism", [name for name, mechanism in MECHANISMS.items() if mechanism.gate])
def test_no_gate_that_grows_is_handed_over(mechanism: str) -> None:
    """Gates above 0 make the definition itself overflow (N6, llama.cpp#22794)."""
    for case in cells(mechanism, "float32", Convention.load("ours", mechanism)):
        assert (case.log_decay <= 0).all()


def verdict(fault: Fault, case: Case, cache: Path) -> Verdict:
    """Of one input, gradients included where the fault is one of gradients."""
    function, convention = loaded(fault), fault.convention
    bench = Bench(convention, 1, cache)
    plain = judge(case, called(function, convention, case), bench.yardstick(case))
    if not fault.gradients:
        return plain.verdict
    assert plain.verdict is Verdict.SAMPLED
    yardstick = bench.gradient_yardstick(case)
    outcome = called(function, convention, case, yardstick.functional)
    return judge_gradients(case, outcome, yardstick).verdict


@pytest.mark.parametrize("fault", FAULTS, ids=number)
def test_a_fault_is_not_flagged_where_it_hides(fault: Fault, cache: Path) -> None:
    assert fault.hides is not None
    assert verdict(fault, fault.hides(fault.convention), cache) is Verdict.SAMPLED
