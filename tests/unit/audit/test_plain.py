"""Plain numbers and others' rules: by hand on small arrays, and against the functions the rules come from."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from verify.audit.bench import Bench
from verify.audit.case import Outcome
from verify.audit.convention.convention import Convention
from verify.audit.gradient.functional import cotangent
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.probes import probe
from verify.audit.judge import judge
from verify.audit.mechanism import MECHANISMS
from verify.audit.plain import rules
from verify.audit.plain.figures import plain
from verify.audit.plain.formula import formula
from verify.audit.plain.rules import (
    RULES,
    Tensor,
    assert_close,
    of_run,
    rms_ratio,
    said,
    summary,
    twice_the_formula,
)
from verify.audit.plain.worst import worst
from verify.audit.reference.results import float64_reference
from verify.numbers.formats import format_named

BFLOAT16, FLOAT32 = format_named("bfloat16"), format_named("float32")


def numbers(difference, reference, target=FLOAT32, tokens=False):
    return plain(np.array(difference, float), np.array(reference, float), target, tokens=tokens)


def test_relative_errors_leave_out_zeros_and_say_so():
    found = numbers([0.5, -0.25, 3.0], [2.0, -0.5, 0.0])
    assert (found.max_rel, found.zeros, found.at_zero) == (0.5, 1, 3.0)
    assert numbers([1.0], [0.0]).max_rel is None
    assert numbers([1.0], [2.0]).at_zero is None


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_ulps_are_distances_to_the_next_number_of_the_format(name):
    """Against torch: the number above each reference is one unit away, in every binade and subnormal."""
    dtype = getattr(torch, name)
    values = torch.tensor([1.0, 1.5, 0.3, 1000.0, 6e-5, torch.finfo(dtype).tiny], dtype=dtype)
    above = torch.nextafter(values, torch.tensor(torch.inf, dtype=dtype))
    for value, higher in zip(values.double().tolist(), above.double().tolist(), strict=True):
        found = numbers([3 * (higher - value)], [value], format_named(name))
        assert found.max_ulp == found.median_ulp == 3
    smallest = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    assert numbers([smallest], [smallest], format_named(name)).max_ulp == 1


def test_the_median_is_over_entries():
    assert numbers([0.0, 2.0**-23, 2.0**-20], [1.0, 1.0, 1.0]).median_ulp == 1


def test_token_and_block_ratios_belong_to_one_head():
    """One wrong token of one head among 20: its own ratio, diluted in its block, not in the other block."""
    reference = np.ones((1, 20, 2, 4))
    difference = np.zeros_like(reference)
    difference[0, 3, 1] = 0.5
    found = numbers(difference, reference, tokens=True)
    assert found.rms_token == 0.5
    assert found.rms_block == pytest.approx(0.5 / math.sqrt(16))
    moved = np.roll(difference, 14, axis=1)
    assert numbers(moved, reference, tokens=True).rms_block == pytest.approx(0.5 / math.sqrt(4))
    assert numbers(difference, reference).rms_token is None


def test_gates_have_one_number_per_token():
    reference = np.ones((1, 3, 1))
    assert numbers(0.25 * reference, reference, tokens=True).rms_token == 0.25


def test_tokens_whose_reference_is_zero_have_no_ratio():
    reference = np.zeros((1, 2, 1, 2))
    reference[0, 1] = 1
    found = numbers(np.full_like(reference, 0.5), reference, tokens=True)
    assert (found.rms_token, found.at_zero) == (0.5, 0.5)


def test_bias_keeps_its_sign_and_truncation_shows():
    assert (numbers([1.0, 3.0], [1.0, 1.0]).bias, numbers([-1.0, 1.0], [1.0, 1.0]).bias) == (2, 0)
    inward = numbers([-1.0, 1.0, -1.0, 1.0], [2.0, -2.0, 3.0, -3.0])
    assert (inward.bias_share, inward.outward_share) == (0, -1)
    assert numbers([0.0, 0.0], [1.0, 1.0]).bias_share == 0


def test_what_is_not_finite_is_infinitely_wrong():
    found = numbers([np.nan, 0.0], [1.0, 1.0])
    assert found.max_rel == found.max_ulp == math.inf
    assert math.isnan(found.bias)
    assert math.isnan(found.outward_share)


def test_nothing_to_measure():
    found = numbers(np.zeros((1, 0, 2, 4)), np.zeros((1, 0, 2, 4)), tokens=True)
    assert all(getattr(found, name) is None for name in vars(found) if name != "zeros")


def tensor(computed, expected, dtype="float32", plain_formula=None, name="output"):
    given = computed, expected, expected if plain_formula is None else plain_formula
    computed, expected, plain_formula = (np.array(x, float) for x in given)
    return Tensor(name, computed, expected, dtype, plain_formula)


def test_flash_linear_attentions_rule():
    expected = np.full(100, 2.0)
    for error, passes in ((0.0099, True), (0.0101, False)):
        assert rms_ratio(tensor(expected + error, expected)) is passes
    assert rms_ratio(tensor(expected + 0.015, expected, name="q")) is True
    assert rms_ratio(tensor(expected + 0.017, expected, name="q")) is False
    assert rms_ratio(tensor(expected + 0.03, expected, name="g")) is True
    one_token = expected.copy()
    one_token[0] += 0.09
    assert rms_ratio(tensor(one_token, expected)) is True
    assert rms_ratio(tensor([1e-6], [1e-9])) is True
    assert rms_ratio(tensor([np.nan], [1.0])) is False


def test_flash_attentions_rule():
    """Twice the formula's error, and twice what adding and taking off 0.3 loses."""
    assert twice_the_formula(tensor([1 + 2e-3], [1.0], plain_formula=[1 + 1e-3])) is True
    assert twice_the_formula(tensor([1 + 2.2e-3], [1.0], plain_formula=[1 + 1e-3])) is False
    assert twice_the_formula(tensor([1 + 2.9e-3], [1.0], plain_formula=[1 + 1e-3], name="q")) is True
    y = torch.tensor([0.7109375, 3.0], dtype=torch.bfloat16)
    slack = 2 * (y + 0.3 - 0.3 - y).abs().max().item()
    assert slack > 0
    for share, passes in ((0.99, True), (1.01, False)):
        off = y.double().numpy() + np.array([0, share * slack])
        assert twice_the_formula(tensor(off, y.double().numpy(), "bfloat16")) is passes
    assert twice_the_formula(tensor([np.nan], [1.0])) is False


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_torchs_rule_is_that_of_torch(dtype):
    """`torch.testing.assert_close` itself, at errors around its defaults."""
    rng = np.random.default_rng(0)
    relative = torch.testing._comparison.default_tolerances(getattr(torch, dtype))[0]
    seen = set()
    for scale in (0.0, 0.3, 0.7, 1.5, 30.0):
        expected = torch.from_numpy(rng.standard_normal(20)).to(getattr(torch, dtype))
        expected[0] = 0
        computed = expected * (1 + scale * relative)
        passes = True
        try:
            torch.testing.assert_close(computed, expected)
        except AssertionError:
            passes = False
        given = computed.double().numpy(), expected.double().numpy()
        assert assert_close(tensor(*given, dtype)) is passes
        seen.add(passes)
    assert seen == {True, False}
    assert assert_close(tensor([np.nan], [1.0], dtype)) is False


def test_the_words_of_all_rules_are_gathered():
    right, wrong = tensor([1.0], [1.0]), tensor([2.0], [1.0])
    assert set(said([right]).values()) == {True}
    assert set(said([right, wrong]).values()) == {False}
    runs = [("a", said([right])), ("b", said([wrong])), ("b", said([wrong])), ("c", {})]
    for row, rule in zip(summary(runs), RULES, strict=True):
        assert row["name"] == rule.name
        assert (row["passes"], row["inputs"], row["failing"], row["classes"]) == (False, 3, 2, ["b"])
    assert all(row["passes"] is None for row in summary([("a", {})]))


def test_where_torch_lacks_the_formula_its_rule_says_nothing(monkeypatch):
    convention = Convention(name="any", mechanism="linear")
    case = probe(convention, "float32", 4)
    yardstick = Bench(convention, 3, runs=2).yardstick(case)
    outcome = Outcome(yardstick.output, yardstick.state, "float32", "float32", None, 0.0)
    judged = judge(case, outcome, yardstick)
    assert of_run(judged) == {rule.name: True for rule in RULES}

    def lacking(case, functional):
        raise RuntimeError("not implemented for 'Half'")

    monkeypatch.setattr(rules, "formula", lacking)
    assert of_run(judged) == {"flash-linear-attention": True, "torch.testing.assert_close": True}
    nothing = dataclasses.replace(judged, outcome=dataclasses.replace(outcome, output=None, final_state=None))
    assert of_run(nothing) == {}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_formula_is_the_definition_in_the_inputs_dtype(mechanism):
    """Right to a few units of each dtype, and no better: it was computed there and not in float64."""
    convention = Convention(name="any", mechanism=mechanism)
    for dtype in ("float64", "float32", "bfloat16"):
        case = probe(convention, dtype, 12, initial_state=True)
        reference = float64_reference(case)
        unit = float(format_named(dtype).unit_roundoff)
        found = formula(case)
        error = np.abs(found["output"] - reference.output).max() / np.abs(reference.output).max()
        assert error <= 50 * unit
        if dtype != "float64":
            assert error >= unit / 4
        assert ("state" in found) == case.kind.stateful


def test_the_formulas_gradients():
    convention = Convention(name="any", mechanism="kda")
    case = probe(convention, "float32", 12, initial_state=True, grouped=True)
    functional = cotangent(case, True)
    exact, found = float64_gradients(case, functional).values, formula(case, functional)
    assert found.keys() == case.arrays().keys()
    for field, array in found.items():
        error = np.abs(array - exact[field]).max() / np.abs(exact[field]).max()
        assert 1e-9 < error < 1e-5, field


def test_the_worst_over_all_inputs():
    def figures(**changes):
        flat = {"max_abs_error": 1.0, "rms_ratio": 0.1, "nonfinite": 0}
        names = ("max_rel", "max_ulp", "median_ulp", "at_zero", "rms_token", "rms_block", "bias")
        values = dict.fromkeys((*names, "bias_share", "outward_share"))
        return {**flat, "plain": values | changes}

    cells = [
        {"class": "a", "output": figures(bias=-3.0, max_ulp=2.0), "state": None},
        {"class": "b", "output": figures(bias=2.0, max_ulp="inf"), "state": figures()},
        {"class": "c", "output": figures(max_ulp=9.0), "state": None},
    ]
    found = worst(cells, [{"class": "d", "inputs": {"q": figures(max_ulp="nan")}}])
    assert found.keys() == {"output", "state", "gradient of q"}
    assert found["output"]["bias"] == {"value": -3.0, "class": "a"}
    assert found["output"]["max_ulp"] == {"value": "inf", "class": "b"}
    assert "max_rel" not in found["output"]
    assert found["gradient of q"]["max_ulp"]["value"] == "nan"
