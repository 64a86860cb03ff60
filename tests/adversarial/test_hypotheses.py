"""Hypotheses of a diagnosis: their models are right, and none fits a kernel that does not have its fault."""

import math
from pathlib import Path

import numpy as np
import pytest
from calling import InProcess, loaded
from catalogue import FAULTS
from fault import Fault

from verify.audit.bench import Bench
from verify.audit.case import Shape
from verify.audit.diagnosis import backward, exponent_range, not_finite
from verify.audit.diagnosis.chunks import Exponents, chunked
from verify.audit.diagnosis.fitting import best_fit
from verify.audit.diagnosis.gate_reading import explain_gate_reading, measured_decays, readings
from verify.audit.diagnosis.leftover import explain_leftover
from verify.audit.diagnosis.merging import merge_variants, merged_attention
from verify.audit.diagnosis.narrow_formats import explain_narrow_format
from verify.audit.diagnosis.variants import attention, recurrence
from verify.audit.inputs.cells import cell_of
from verify.audit.judge import Judgement
from verify.audit.laboratory import Laboratory

CORRECT = {
    function.split("_")[1]: Fault("–", "none", "correct", function, ("random",), (), None)
    for function in ("chunked_gdn", "tiled_softmax")
}
BY_NUMBER = {fault.number: fault for fault in FAULTS}
SHAPE = Shape(B=1, T=37, H=1, HV=2, K=4, V=3)


def lab(fault: Fault, cache: Path) -> Laboratory:
    convention = fault.convention
    return Laboratory(InProcess(loaded(fault), convention), Bench(convention, 50, cache), fault.dtype)  # type: ignore[arg-type]


def judged(own: Laboratory, *names: str) -> list[Judgement]:
    mechanism = own.convention.mechanism
    return [own.judge(cell_of(name, mechanism, SHAPE, own.dtype, True, 5)) for name in names]


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
@pytest.mark.parametrize("size", [16, 64])
def test_the_chunked_model_is_the_recurrence(mechanism: str, size: int) -> None:
    case = cell_of("random", mechanism, SHAPE, "float64", True, 1)
    exact = recurrence(case)
    for mine, theirs in zip(chunked(case, size, Exponents()), exact, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12, abs=1e-13)
    for field in ("pairs", "read", "carried"):
        other = chunked(case, size, Exponents(**{field: math.log(2.0)}))
        moved = max(np.abs(x - y).max() for x, y in zip(other, exact, strict=True))
        # Nothing is carried where there is one chunk only, but to the end of it.
        assert moved > 1e-4


def test_what_is_carried_does_not_depend_on_decays_between_tokens() -> None:
    case = cell_of("random", "simple_gla", SHAPE, "float64", True, 1)
    output, state = chunked(case, 64, Exponents(pairs=math.log(2.0)))
    assert state == pytest.approx(recurrence(case)[1], rel=1e-12, abs=1e-13)
    assert np.abs(output - recurrence(case)[0]).max() > 1e-3


def test_the_merged_model_is_attention() -> None:
    case = cell_of("logits-large", "softmax", SHAPE, "float64", False, 1)
    exact = attention(case)[0]
    for starts in ((0,), (0, 16), (0, 1, 2, 36), range(0, 37, 8)):
        assert merged_attention(case, starts, 1.0)[0] == pytest.approx(exact, rel=1e-12, abs=1e-13)
    assert np.abs(merged_attention(case, (0, 16), 1.4)[0] - exact).max() > 1e-3


def test_readings_of_measured_decays() -> None:
    gates = (-1e-3, -0.03, -0.2, -1.0, -4.0, -8.0)
    assert list(readings({})) == []
    assert list(readings({g: g for g in gates})) == []
    assert {r.reason for r in readings(dict.fromkeys(gates, 0.25))} == {"decay does not depend on the gate"}
    below = list(readings({g: max(g, -3.0) for g in gates}))
    assert {r.reason for r in below} == {"gates clamped from below"}
    assert below[0].low == -3.0
    above = list(readings({g: min(g, -0.1) for g in gates}))
    assert {r.reason for r in above} == {"gates clamped from above"}
    assert above[0].high == -0.1


def test_no_hypothesis_fits_a_correct_kernel(cache: Path) -> None:
    for mechanism, fault in CORRECT.items():
        own = lab(fault, cache)
        assert explain_leftover(own) is None
        assert backward.explain_crossed_heads(own, "") is None
        assert backward.explain_other_keys(own, "") is None
        assert backward.explain_low_logits(own, "") is None
        assert not_finite.explain_lengths(own, "") is None
        if mechanism != "softmax":
            assert backward.explain_subtraction(own, "") is None
            assert not_finite.explain_rising_sums(own, "") is None
            assert exponent_range.first_rows(own) is None
            decays = measured_decays(own)
            assert all(decay == pytest.approx(gate, rel=1e-3, abs=1e-6) for gate, decay in decays.items())


@pytest.mark.parametrize(("number", "name"), [("F5", "gate-strong"), ("E2", "random"), ("I3", "random")])
def test_a_hypothesis_fits_its_own_fault_alone(number: str, name: str, cache: Path) -> None:
    own = lab(BY_NUMBER[number], cache)
    cells = judged(own, name, "positive")
    wrong, passing = [j for j in cells if j.failed], [j for j in cells if not j.failed]
    assert (explain_gate_reading(own, wrong, passing) is not None) is (number == "F5")
    assert (explain_leftover(own) is not None) is (number == "I3")
    assert explain_narrow_format(own, wrong) is None
    assert list(merge_variants(wrong)) == []


def test_a_merge_that_fits_no_base_is_not_named(cache: Path) -> None:
    own = lab(BY_NUMBER["J3"], cache)
    wrong = [j for j in judged(own, "random", "positive") if j.failed]
    found = best_fit(merge_variants(wrong), wrong, [])
    assert found is not None
    assert "base 2" in found.detail
    bent = [own.judge(j.case.replace(q=2 * j.case.q)) for j in wrong]
    mixed = [
        Judgement(j.case, b.outcome, j.yardstick, b.output, b.state) for j, b in zip(wrong, bent, strict=True)
    ]
    assert best_fit(merge_variants(mixed), mixed, []) is None
