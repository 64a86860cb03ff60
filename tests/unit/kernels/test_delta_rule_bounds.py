"""The forms stay within rounding-error bounds counted operation by operation from the unit roundoff.

Every column s of the state evolves by s' = Diag(e^g) s, e = v - k.s', w = beta e, s = s' + k w. With |k| <= 1
and beta in [0, 2] one step is a contraction (claim kda.transition-spectrum), so an error made at one token
reaches later states without growing: local errors add up. All counts are first order in the unit roundoff u,
for any summation order; the total is doubled, which covers the higher orders and the rounding of the
magnitudes measured below, because every count times u is far below 1. Sizes: K key channels, C rows of a
chunk, sigma >= |s|, |s'|, vmax >= |v|, |q| the scaled query.
The decay between two tokens of C rows, L = ceil(log2 C), errs by at most D u with D = 7 L + 2: it is a
product of at most 2 L + 1 exponentials of block sums (2 each, and 2 L products), whose depth is at most L,
as x e^-x < 1.
"""

from fractions import Fraction
from math import exp

import pytest
import torch

from kernels import chunkwise


class Exact:
    """The recurrence in float64: states before each token, errors and writes, and the sizes of the bounds."""

    def __init__(self, inputs):
        x = {name: value.double() for name, value in inputs.items()}
        group = x["v"].shape[2] // x["q"].shape[2]
        self.k, self.v, self.beta = x["k"].repeat_interleave(group, 2), x["v"], x["beta"]
        g = x.get("g", torch.zeros_like(self.beta))
        self.g = (g if g.ndim == 4 else g.unsqueeze(-1)).expand_as(self.k)
        assert (self.k.square().sum(-1) <= 1).all()
        self.tokens, self.keys = self.v.shape[1], self.k.shape[-1]
        state = x["initial_state"]
        self.states, errors = [state], []
        for t in range(self.tokens):
            state = self.g[:, t].exp().unsqueeze(-1) * state
            errors.append(self.v[:, t] - (self.k[:, t].unsqueeze(-1) * state).sum(-2))
            write = self.beta[:, t].unsqueeze(-1) * errors[-1]
            state = state + self.k[:, t].unsqueeze(-1) * write.unsqueeze(-2)
            self.states.append(state)
        self.errors = torch.stack(errors, 1)
        self.writes = self.beta.unsqueeze(-1) * self.errors
        self.sigma = max(s.norm(dim=-2).max().item() for s in self.states)
        self.vmax = self.v.abs().max().item()
        self.query = x["q"].norm(dim=-1).max().item() * self.keys**-0.5

    def chunk(self, start, end):
        """Of one chunk, heads first: Scores(K, K) Diag(beta), strictly lower; right-hand sides; errors."""
        k, v, g, beta, errors = (
            x[:, start:end].transpose(1, 2) for x in (self.k, self.v, self.g, self.beta, self.errors)
        )
        rows = torch.arange(end - start)
        between = (rows[:, None] >= rows) & (rows[None, :, None] < rows) & (rows[:, None, None] >= rows)
        segments = torch.einsum("ijt,bhtk->bhijk", between.double(), g.clamp(min=-1e4))
        lower = torch.einsum("bhik,bhjk,bhijk,bhj->bhij", k, k, segments.exp(), beta).tril(-1)
        from_start = g.cumsum(-2).exp() * k
        return lower, v - from_start @ self.states[start], errors, beta


def recurrent_bound(inputs, u):
    """(error of o, error of the state). Per token, in units of u:
    decay 3 sigma (exp 2, product 1); read K sigma and subtraction (sigma + vmax), both times beta <= 2;
    products by beta and k 2 |e| <= 4 (sigma + vmax); final sum sigma. Output: K + 2 (dot, scale)."""
    x = Exact(inputs)
    step = 4 * x.sigma + 2 * (x.keys * x.sigma + x.sigma + x.vmax) + 4 * (x.sigma + x.vmax)
    state = x.tokens * step * u
    return 2 * x.query * (state + (x.keys + 2) * x.sigma * u), 2 * state


def inverse_bound(lower):
    """Bound on the error of the blocked inverse N of I + lower, in units of u, by the same recursion.

    Substitution in w rows leaves residuals of w u |lower| |N| columnwise, so errors w |N| |lower| |N|. In
    Z = -Y A X two products of w terms err by 2 w |Y| |A| |X|, and the errors of X and Y are carried over.
    """
    rows = lower.shape[-1]
    unit = torch.eye(rows, dtype=lower.dtype)
    inverse = torch.linalg.inv(unit + lower).abs()
    if rows <= 16:
        return rows * inverse @ lower.abs() @ inverse
    half = 1 << (rows - 1).bit_length() - 1
    bound = torch.zeros_like(lower)
    first, second = (lower[..., part, part] for part in (slice(half), slice(half, None)))
    x, y, a = inverse[..., :half, :half], inverse[..., half:, half:], lower[..., half:, :half].abs()
    d_x, d_y = bound[..., :half, :half], bound[..., half:, half:]
    d_x[:], d_y[:] = inverse_bound(first), inverse_bound(second)
    bound[..., half:, :half] = 2 * half * y @ a @ x + d_y @ a @ x + y @ a @ d_x
    return bound


def chunked_bound(inputs, u, chunk_size):
    """(error of o, error of the state). Errors in the writes of a chunk add up in the state, by contraction.
    Per chunk of C rows, in units of u, with N the inverse, r the residuals and e = N r the errors:
    r: (K + D + 1) sigma for the dot with the decayed key + sigma + vmax for the difference, carried by |N|;
    matrix: entries off by beta (K + D + 3) (decays, three products, dot), carried by |N| (.) |e|;
    inverse: `inverse_bound`, times |r|;
    products: N times beta, the scores or the keys times that, and that times r, (2 C + 1) beta |N| |r|;
    next state, one of the C + 1 terms of a sum: (D + C + 2) sigma + (D + 1) sum |w|;
    output, as one of C + 1 terms too: |q| ((K + D + C + 3) sigma + (K + D + 3) sum |w|)."""
    x = Exact(inputs)
    size = min(chunk_size, x.tokens)
    decay = 7 * (size - 1).bit_length() + 2
    state = output = 0.0
    for start in range(0, x.tokens, chunk_size):
        end = min(start + chunk_size, x.tokens)
        lower, right, errors, beta = x.chunk(start, end)
        inverse = torch.linalg.inv(torch.eye(end - start, dtype=lower.dtype) + lower).abs()
        of_right = (x.keys + decay + 1) * x.sigma + x.sigma + x.vmax
        of_matrix = (x.keys + decay + 3) * beta.unsqueeze(-2) * torch.ones_like(lower).tril(-1)
        off = inverse @ (of_right + of_matrix @ errors.abs())
        off = off + (inverse_bound(lower) + (2 * size + 1) * inverse) @ right.abs()
        off = (beta.unsqueeze(-1) * off).sum(-2).max().item()
        total = x.writes[:, start:end].abs().sum(1).max().item()
        state += off + (decay + size + 2) * x.sigma + (decay + 1) * total
        read = (x.keys + decay + size + 3) * x.sigma
        output = max(output, off + read + (x.keys + decay + 3) * total)
    return 2 * x.query * (state + output) * u, 2 * state * u


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
            k = [Fraction(x) for x in exact["k"][b][t][0]]
            gate = exact["g"][b][t][head] if mechanism.gated else 0.0
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
def test_gates_of_any_size_within_bound(gated, gate, chunk_size, dtype):
    assert judge(gated, gated.random(65, gate=gate), dtype, chunk_size) <= 1


@DTYPES
@pytest.mark.parametrize("gate", [-100.0, -1000.0, -torch.inf])
@pytest.mark.parametrize("token", [0, 16, 37, 63, 64])
def test_one_extreme_gate_within_bound(gated, gate, token, dtype):
    inputs = gated.random(70)
    inputs["g"][:, token] = gate
    assert judge(gated, inputs, dtype, 64) <= 1


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

    def doubling(matrix):
        power = matrix.tril(-1)
        inverse = torch.eye(matrix.shape[-1], dtype=matrix.dtype) - power
        for _ in range((matrix.shape[-1] - 1).bit_length() - 1):
            power = power @ power
            inverse = inverse + power @ inverse
        return inverse

    monkeypatch.setattr(chunkwise, "unit_lower_inverse", doubling)
    assert judge(mechanism, mechanism.random(64), torch.float64, 8) <= 1
    assert judge(mechanism, constant_key(mechanism, 0.97), torch.float32, 64) > 1


def test_bound_rejects_single_precision_in_disguise(mechanism, monkeypatch):
    inputs, solve = mechanism.random(65), torch.linalg.solve_triangular

    def single(matrix, right, **options):
        return solve(matrix.float(), right.float(), **options).double()

    monkeypatch.setattr(torch.linalg, "solve_triangular", single)
    assert judge(mechanism, inputs, torch.float64, 64) > 1
