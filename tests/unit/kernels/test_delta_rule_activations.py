"""Raw gates, logits and keys activated inside a kernel give what activating them outside gives."""

import math
import re

import pytest
import torch

from kernels.gates import l2_normalise, log_decay


def every_form(mechanism):
    return mechanism.reference, mechanism.recurrent, mechanism.chunked


def test_l2_norm_adds_epsilon_to_the_sum():
    x = torch.tensor([[3e-3, 4e-3]], dtype=torch.float64)
    expected = [value / math.sqrt(25e-6 + 1e-6) for value in (3e-3, 4e-3)]
    assert l2_normalise(x)[0].tolist() == pytest.approx(expected, rel=8 * 2**-53)
    assert torch.equal(l2_normalise(torch.zeros(3)), torch.zeros(3))


@pytest.mark.parametrize("raw", [-200.0, -90.0, -80.5, -79.5, -30.0, -1.0, 0.0, 5.0, 25.0, 60.0])
@pytest.mark.parametrize("rate", [-3.0, 0.0, 4.3])
def test_log_decay_is_the_formula(raw, rate):
    """The exponent of a sum a errs by |a| units of roundoff; log1p, exp and the products by a few."""
    x, a = torch.tensor([raw], dtype=torch.float64), torch.tensor([rate], dtype=torch.float64)
    bias = torch.tensor([0.25], dtype=torch.float64)
    soft = math.log1p(math.exp(-abs(raw + 0.25))) + max(raw + 0.25, 0.0)
    relative = (abs(raw) + abs(rate) + 10) * 2**-53
    assert log_decay(x, a, bias, None).item() == pytest.approx(-math.exp(rate) * soft, rel=relative)
    size = math.exp(-abs(math.exp(rate) * (raw + 0.25)))
    bounded = -5 * (size if raw + 0.25 < 0 else 1) / (1 + size)
    slope = math.exp(rate) * (abs(raw) + 1)
    assert log_decay(x, a, bias, -5.0).item() == pytest.approx(bounded, rel=(slope + 10) * 2**-52)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("bound", [None, -5.0])
def test_log_decay_of_extreme_gates_is_a_decay_with_finite_gradients(dtype, bound):
    raw = (
        torch.tensor([-1e4, -200.0, -95.0, -80.0, 0.0, 80.0, 1e4], dtype=dtype).repeat(4, 1).requires_grad_()
    )
    rates = torch.tensor([[-100.0], [0.0], [87.0], [100.0]], dtype=dtype).requires_grad_()
    g = log_decay(raw, rates, None, bound)
    assert (g <= 0).all()
    assert not g.isnan().any()
    if bound is None:
        assert g[3, 1].item() == pytest.approx(-math.exp(-100), rel=1e-2)
        assert g[3, 2].item() < -100
    g.exp().sum().backward()
    assert raw.grad.isfinite().all()
    assert rates.grad.isfinite().all()


def raw_inputs(mechanism):
    inputs = mechanism.random(9)
    inputs["beta"] = 3 * inputs["beta"] - 2
    heads, keys = inputs["v"].shape[2], inputs["q"].shape[-1]
    options = {"qk_l2norm": True, "beta_logits": True}
    if mechanism.gated:
        inputs["g"] = -2 * inputs["g"] - 1
        width = keys if mechanism.gate_per_channel else 1
        options["A_log"] = torch.linspace(-1, 1, heads, dtype=torch.float64)
        options["dt_bias"] = torch.linspace(-2, 2, heads * width, dtype=torch.float64)
    return inputs, options


def activated(mechanism, inputs, options, bound):
    result = inputs | {name: l2_normalise(inputs[name]) for name in ("q", "k")}
    result["beta"] = inputs["beta"].sigmoid()
    if mechanism.gated:
        rate = options["A_log"].unsqueeze(-1)
        raw = inputs["g"] if mechanism.gate_per_channel else inputs["g"].unsqueeze(-1)
        g = log_decay(raw, rate, options["dt_bias"].reshape(rate.shape[0], -1), bound)
        result["g"] = g if mechanism.gate_per_channel else g.squeeze(-1)
    return result


@pytest.mark.parametrize("bound", [None, -5.0])
def test_activated_inside_equals_activated_outside(mechanism, bound):
    inputs, options = raw_inputs(mechanism)
    outside = activated(mechanism, inputs, options, bound)
    if mechanism.gated:
        options["gate_lower_bound"] = bound
    for kernel in every_form(mechanism):
        assert torch.equal(kernel(**inputs, **options)[0], kernel(**outside)[0])


def test_gradients_reach_the_raw_values(mechanism):
    inputs, options = raw_inputs(mechanism)
    leaves = {name: x.requires_grad_() for name, x in (inputs | options).items() if torch.is_tensor(x)}
    flags = {"qk_l2norm": True, "beta_logits": True}
    found = torch.autograd.grad(mechanism.chunked(**leaves, **flags)[0].sum(), list(leaves.values()))
    expected = torch.autograd.grad(mechanism.reference(**leaves, **flags)[0].sum(), list(leaves.values()))
    for name, a, b in zip(leaves, found, expected, strict=True):
        assert b.count_nonzero() > 0
        assert torch.allclose(a, b, rtol=2**-35, atol=2**-35), name


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"A_log": torch.zeros(3)}, "A_log must have shape [4], but its shape is [3]."),
        (
            {"dt_bias": torch.zeros(4)},
            "dt_bias needs A_log, which says that g is a raw gate, but A_log is None.",
        ),
        (
            {"gate_lower_bound": -5.0},
            "gate_lower_bound needs A_log, which says that g is a raw gate, but A_log is None.",
        ),
        (
            {"A_log": torch.zeros(4), "gate_lower_bound": 0.5},
            "gate_lower_bound must be a finite number below 0, but it is 0.5.",
        ),
    ],
)
def test_bad_gate_options_are_refused(gated, options, sentence):
    for kernel in every_form(gated):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**gated.integers(5), **options)


def test_bias_needs_one_entry_per_gate(gated):
    entries = 16 if gated.gate_per_channel else 4
    sentence = f"dt_bias must have {entries} entries, but its shape is [5]."
    for kernel in every_form(gated):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**gated.integers(5), A_log=torch.zeros(4), dt_bias=torch.zeros(5))


@pytest.mark.parametrize("name", ["q", "k", "v", "beta", "initial_state", "g"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_check_refuses_what_is_not_finite(gated, name, value):
    inputs = gated.integers(5)
    inputs[name].view(-1)[3] = value
    sentence = f"{name} must be finite, but it contains {value}."
    for kernel in every_form(gated):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**inputs, check=True)


def test_check_accepts_a_gate_that_forgets(gated):
    inputs = gated.integers(20, reset=True)
    assert (inputs["g"] == -torch.inf).any()
    for kernel in every_form(gated):
        assert torch.equal(kernel(**inputs, check=True)[0], kernel(**inputs)[0])
