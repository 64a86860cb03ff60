"""The forms stay within rounding-error bounds counted operation by operation from the unit roundoff.

Every column s of the state evolves by s' = Diag(e^g) s, e = beta (v - k.s'), s = s' + k e. With |k| <= 1
and beta in [0, 2] one step is a contraction (claim kda.transition-spectrum), so an error made at one token
reaches later states without growing: local errors add up. All counts are first order in the unit roundoff u,
for any summation order; the total is doubled, which covers the higher orders and the rounding of the
magnitudes measured below, because every count times u is far below 1. Sizes: K key channels, C rows of a
chunk, sigma >= |s|, |s'|, vmax >= |v|, E = sum of |e| over a chunk, |q| the scaled query.
A factor e^(sum of m gates) errs by at most (m + 2) u: m from the sum, as x e^-x < 1, and 2 from exp.
"""

from fractions import Fraction
from math import exp

import pytest
import torch


def magnitudes(inputs):
    """sigma, vmax, |q| and |e| [B, T, HV, V] along the recurrence, in float64."""
    q, k, v, g, beta, state = (
        inputs[name].double() for name in ("q", "k", "v", "g", "beta", "initial_state")
    )
    assert (k.square().sum(-1) <= 1).all()
    group = v.shape[2] // q.shape[2]
    k = k.repeat_interleave(group, 2)
    g = g if g.ndim == 4 else g.unsqueeze(-1)
    sigma, writes = [state.norm(dim=-2).max()], []
    for t in range(v.shape[1]):
        state = g[:, t].exp().unsqueeze(-1) * state
        writes.append(beta[:, t, :, None] * (v[:, t] - (k[:, t].unsqueeze(-1) * state).sum(-2)))
        state = state + k[:, t].unsqueeze(-1) * writes[-1].unsqueeze(-2)
        sigma.append(state.norm(dim=-2).max())
    query = q.norm(dim=-1).max() * q.shape[-1] ** -0.5
    return max(sigma).item(), v.abs().max().item(), query.item(), torch.stack(writes, 1).abs()


def recurrent_bound(inputs, u):
    """(error of o, error of the state). Per token, in units of u:
    decay 3 sigma (exp 2, product 1); read K sigma and subtraction (sigma + vmax), both times beta <= 2;
    products by beta and k 2 |e| <= 4 (sigma + vmax); final sum sigma. Output: K + 2 (dot, scale)."""
    sigma, vmax, query, _ = magnitudes(inputs)
    tokens, keys = inputs["v"].shape[1], inputs["q"].shape[-1]
    step = 4 * sigma + 2 * (keys * sigma + sigma + vmax) + 4 * (sigma + vmax)
    state = tokens * step * u
    return 2 * query * (state + (keys + 2) * sigma * u), 2 * state


def chunked_bound(inputs, u, chunk_size):
    """(error of o, error of the state). A residual d_j in row j of the triangular system is a write of d_j at
    token j, so it moves later states by at most |d_j|. Per chunk, in units of u, row by row:
    right-hand side: beta ((K + C + 3) sigma for the dot with the decayed key + 2 (sigma + vmax));
    matrix: entries off by beta (K + C + 7) (two factors, three products, dot), forward substitution off by
    C times the entries (at most beta), all times the earlier |e|, and C |e_j| for the row itself;
    next state: (C + 4) sigma + (2 C + 3) E; output: |q| ((K + C + 5) sigma + (K + 2 C + 7) E)."""
    sigma, vmax, query, writes = magnitudes(inputs)
    tokens, keys = inputs["v"].shape[1], inputs["q"].shape[-1]
    size = min(chunk_size, tokens)
    state = output = 0.0
    for start in range(0, tokens, chunk_size):
        total = writes[:, start : start + chunk_size].sum(1).max().item()
        right = 2 * size * ((keys + size + 3) * sigma + 2 * (sigma + vmax))
        matrix = size * (2 * (keys + size + 7) + 2 * size) * total + size * total
        state += right + matrix + (size + 4) * sigma + (2 * size + 3) * total
        output = max(output, (keys + size + 5) * sigma + (keys + 2 * size + 7) * total)
    return 2 * query * (state + output) * u, 2 * state * u


def unit_roundoff(dtype):
    return torch.finfo(dtype).eps / 2


def rounded(inputs, dtype):
    return {name: x.to(dtype) for name, x in inputs.items()}


def excess(outcome, expected, bounds):
    """The largest error as a fraction of its bound."""
    errors = [(x.double() - y).abs().max().item() for x, y in zip(outcome, expected, strict=True)]
    assert all(error == error for error in errors)
    return max(error / bound for error, bound in zip(errors, bounds, strict=True))


def judge(mechanism, inputs, dtype, chunk_size):
    """Excess of the chunked form against the reference, each allowed its own bound."""
    inputs = rounded(inputs, dtype)
    own = chunked_bound(inputs, unit_roundoff(dtype), chunk_size)
    reference = recurrent_bound(inputs, unit_roundoff(torch.float64))
    outcome = mechanism.chunked(**inputs, output_final_state=True, chunk_size=chunk_size)
    expected = mechanism.reference(**inputs, output_final_state=True)
    return excess(outcome, expected, [a + b for a, b in zip(own, reference, strict=True)])


DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def test_reference_against_exact_rationals(mechanism):
    """Eq. 1 in matrix form, (I - beta k k^T) Diag(alpha) S + beta k v^T, in exact arithmetic."""
    inputs = mechanism.random(6, keys=3)
    o, state = mechanism.reference(**inputs, output_final_state=True)
    bound_o, bound_state = recurrent_bound(inputs, unit_roundoff(torch.float64))
    exact = {name: x.tolist() for name, x in inputs.items()}
    keys, scale = range(3), Fraction(3**-0.5)
    for b, head, column in ((0, 0, 0), (1, 1, 4)):
        s = [Fraction(exact["initial_state"][b][head][i][column]) for i in keys]
        for t in range(6):
            gate, k = exact["g"][b][t][head], [Fraction(x) for x in exact["k"][b][t][0]]
            alpha = [Fraction(exp(x)) for x in (gate if mechanism.gate_per_channel else [gate] * 3)]
            beta, v = Fraction(exact["beta"][b][t][head]), Fraction(exact["v"][b][t][head][column])
            transition = [[(i == j) - beta * k[i] * k[j] for j in keys] for i in keys]
            s = [sum(transition[i][j] * alpha[j] * s[j] for j in keys) + beta * k[i] * v for i in keys]
            read = scale * sum(Fraction(x) * y for x, y in zip(exact["q"][b][t][0], s, strict=True))
            assert abs(Fraction(o[b, t, head, column].item()) - read) <= Fraction(bound_o)
        for i in keys:
            assert abs(Fraction(state[b, head, i, column].item()) - s[i]) <= Fraction(bound_state)


@DTYPES
@pytest.mark.parametrize("tokens", [1, 17, 65])
@pytest.mark.parametrize("chunk_size", [1, 3, 16, 64, 200])
def test_chunked_within_bound(mechanism, tokens, chunk_size, dtype):
    assert judge(mechanism, mechanism.random(tokens), dtype, chunk_size) <= 1


@DTYPES
def test_recurrent_within_bound(mechanism, dtype):
    inputs = rounded(mechanism.random(65), dtype)
    u = unit_roundoff(dtype) + unit_roundoff(torch.float64)
    outcome = mechanism.recurrent(**inputs, output_final_state=True)
    expected = mechanism.reference(**inputs, output_final_state=True)
    assert excess(outcome, expected, recurrent_bound(inputs, u)) <= 1


@DTYPES
@pytest.mark.parametrize("gate", [0.0, -1e-3, -5.0, -20.0, -1000.0, -torch.inf])
@pytest.mark.parametrize("chunk_size", [16, 64])
def test_gates_of_any_size_within_bound(mechanism, gate, chunk_size, dtype):
    assert judge(mechanism, mechanism.random(65, gate=gate), dtype, chunk_size) <= 1


@DTYPES
@pytest.mark.parametrize("gate", [-100.0, -1000.0, -torch.inf])
@pytest.mark.parametrize("token", [0, 16, 37, 63, 64])
def test_one_extreme_gate_within_bound(mechanism, gate, token, dtype):
    inputs = mechanism.random(70)
    inputs["g"][:, token] = gate
    assert judge(mechanism, inputs, dtype, 64) <= 1


def constant_key(mechanism, beta):
    inputs = mechanism.random(130, gate=-1e-4, beta=beta)
    inputs["k"] = inputs["k"][:, :1].expand_as(inputs["k"])
    return inputs


@DTYPES
@pytest.mark.parametrize("beta", [0.9, 0.97, 1.0, 2.0])
@pytest.mark.parametrize("chunk_size", [16, 64])
def test_repeated_key_within_bound(mechanism, beta, chunk_size, dtype):
    assert judge(mechanism, constant_key(mechanism, beta), dtype, chunk_size) <= 1


def test_bound_rejects_the_doubling_inverse(mechanism, monkeypatch):
    """(I - L)(I + L^2)(I + L^4)... is exact in real arithmetic (claim kda.neumann-exact-unstable)."""

    def doubling(matrix, right, *, upper, unitriangular):
        power = matrix.tril(-1)
        right = right - power @ right
        for _ in range((matrix.shape[-1] - 1).bit_length() - 1):
            power = power @ power
            right = right + power @ right
        return right

    inputs = mechanism.random(64)
    monkeypatch.setattr(torch.linalg, "solve_triangular", doubling)
    assert judge(mechanism, inputs, torch.float64, 8) <= 1
    assert judge(mechanism, constant_key(mechanism, 0.97), torch.float32, 64) > 1


def test_bound_rejects_single_precision_in_disguise(mechanism, monkeypatch):
    inputs, solve = mechanism.random(65), torch.linalg.solve_triangular

    def single(matrix, right, **options):
        return solve(matrix.float(), right.float(), **options).double()

    monkeypatch.setattr(torch.linalg, "solve_triangular", single)
    assert judge(mechanism, inputs, torch.float64, 64) > 1
