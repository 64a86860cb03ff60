"""The explicit gradients against finite differences and exact derivatives."""

from fractions import Fraction

import pytest
import torch

NAMES = ("q", "k", "v", "g", "beta", "initial_state")


def positional(mechanism, inputs, **options):
    """The chunked form as a function of its tensors, and the tensors."""
    names = [name for name in NAMES if name in inputs]

    def function(*tensors):
        return mechanism.chunked(**dict(zip(names, tensors, strict=True)), output_final_state=True, **options)

    return function, [inputs[name].clone().requires_grad_() for name in names]


@pytest.mark.parametrize(("chunk_size", "offsets"), [(1, None), (3, None), (64, None), (2, [0, 0, 1, 5])])
def test_gradcheck(mechanism, chunk_size, offsets):
    inputs = {name: x[:1] for name, x in mechanism.random(5, keys=3).items()}
    # Away from the ends of the domain, where a finite difference would step out of it.
    inputs["beta"] = 0.1 + 0.8 * inputs["beta"]
    if mechanism.gated:
        inputs["g"] = inputs["g"] - 0.1
    options = {"chunk_size": chunk_size}
    if offsets is not None:
        inputs["initial_state"] = torch.cat([inputs["initial_state"]] * 3)
        options["cu_seqlens"] = torch.tensor(offsets)
    assert torch.autograd.gradcheck(*positional(mechanism, inputs, **options))


class Dual:
    """a + b d with d^2 = 0, in exact rationals."""

    def __init__(self, value, slope=0):
        self.value, self.slope = Fraction(value), Fraction(slope)

    def __add__(self, other):
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other):
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)


def exact_derivative(x, seed, weights, state_weights):
    """Derivative of sum weights o + sum state_weights S_T along ``seed``, for one head and scale 1.

    x and seed hold q, k, v, beta, the decay alpha = e^g per channel, and the state, as nested lists.
    """

    def dual(name, *index):
        value, slope = x[name], seed[name]
        for i in index:
            value, slope = value[i], slope[i]
        return Dual(value, slope)

    tokens, keys, values = len(x["q"]), len(x["q"][0]), len(x["v"][0])
    state = [[dual("state", i, j) for j in range(values)] for i in range(keys)]
    total = Dual(0)
    for t in range(tokens):
        for j in range(values):
            for i in range(keys):
                state[i][j] = dual("alpha", t, i) * state[i][j]
            error = dual("v", t, j)
            for i in range(keys):
                error = error - dual("k", t, i) * state[i][j]
            for i in range(keys):
                state[i][j] = state[i][j] + dual("beta", t) * dual("k", t, i) * error
                total = total + Dual(weights[t][j]) * dual("q", t, i) * state[i][j]
    for i in range(keys):
        for j in range(values):
            total = total + Dual(state_weights[i][j]) * state[i][j]
    return total.slope


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 8])
def test_gradients_are_the_exact_derivative(mechanism, chunk_size):
    """Small integers and decays of e^0 and e^-inf: gradients must agree with exact ones to the last bit,
    in every entry. A gate's derivative is alpha times that of its decay alpha."""
    inputs = {name: x[:1] for name, x in mechanism.integers(5, keys=2, reset=True, seed=3).items()}
    inputs["beta"] = inputs["beta"] + 0.5
    inputs["q"], inputs["k"] = (inputs[name] + torch.tensor([0.0, 1.0]) for name in ("q", "k"))
    tokens, heads = inputs["v"].shape[1:3]
    weights = torch.arange(inputs["v"].numel(), dtype=torch.float64).reshape(inputs["v"].shape) % 5 - 2
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    o, state = mechanism.chunked(**leaves, scale=1.0, output_final_state=True, chunk_size=chunk_size)
    ((weights * o).sum() + 3 * state.sum()).backward()
    for head in (0, heads - 1):
        x = {name: inputs[name][0, :, head // 2].tolist() for name in ("q", "k")}
        x |= {name: inputs[name][0, :, head].tolist() for name in ("v", "beta")}
        g = inputs["g"][0, :, head].exp() if mechanism.gated else torch.ones(tokens, dtype=torch.float64)
        g = g if g.ndim == 2 else g.unsqueeze(-1).expand(-1, 2)
        x["alpha"] = g.tolist()
        x["state"] = inputs["initial_state"][0, head].tolist()
        found = {name: leaves[name].grad[0, :, head] for name in ("v", "beta")}
        found["state"] = leaves["initial_state"].grad[0, head]
        if mechanism.gated:
            found["alpha"] = leaves["g"].grad[0, :, head]
        for name, gradient in found.items():
            for index in torch.cartesian_prod(*(torch.arange(n) for n in gradient.shape)).reshape(
                -1, gradient.ndim
            ):
                seed = {key: torch.zeros(torch.tensor(value).shape) for key, value in x.items()}
                seed[name][tuple(index)] = 1
                if name == "alpha":
                    seed[name] = seed[name] * g
                slopes = {key: value.tolist() for key, value in seed.items()}
                exact = exact_derivative(x, slopes, weights[0, :, head].tolist(), [[3] * 3] * 2)
                assert Fraction(gradient[tuple(index)].item()) == exact, (name, index)


@pytest.mark.parametrize("chunk_size", [4, 16, 64])
def test_a_gate_that_forgets_gets_no_gradient(gated, chunk_size):
    """A decay of 0 stays 0 to first order, and terms of other gates leave no rounding errors behind."""
    inputs = gated.random(70)
    inputs["g"][:, 37] = -torch.inf
    inputs["g"][:, 50] = -2000.0
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    o, state = gated.chunked(**leaves, output_final_state=True, chunk_size=chunk_size)
    (o[:, 37:].square().sum() + state.square().sum()).backward()
    gradient = leaves["g"].grad
    assert gradient.isfinite().all()
    assert gradient[:, [37, 50]].count_nonzero() == 0
    assert gradient[:, 38].count_nonzero() > 0
    assert leaves["initial_state"].grad.count_nonzero() == 0


def test_only_the_asked_for_gradients_are_needed(mechanism):
    inputs = mechanism.random(20)
    inputs["v"].requires_grad_()
    o, state = mechanism.chunked(**inputs)
    assert state is None
    o.sum().backward()
    assert inputs["v"].grad.count_nonzero() > 0
