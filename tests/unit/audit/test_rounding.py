"""Stochastic rounding: to neighbours, mean zero, exact where arithmetic is exact, one seed per run."""

import numpy as np
import pytest
import torch

from verify.audit.tolerance.rounding import StochasticRounding
from verify.numbers.formats import BFLOAT16, FLOAT32, FLOAT64

U = 2.0**-24


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def single(x):
    return x.float().double()


def mode(runs, *, coherent=None, seed=0, target=FLOAT32):
    return StochasticRounding(target, runs, runs if coherent is None else coherent, seed)


@pytest.mark.parametrize("target", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize("coherent", [0, 400])
def test_rounds_to_neighbours_with_mean_zero(target, coherent):
    runs, x = 400, normal(1, 50)
    rounded = mode(runs, coherent=coherent, target=target).round(x.repeat(runs, 1)).numpy()
    size = x[0].abs().numpy()
    quantum = 2.0 ** (np.floor(np.log2(size)) - target.precision + 1)
    low = np.floor(size / quantum) * quantum
    up = (np.abs(rounded) - low) / quantum
    assert np.isin(up, (0.0, 1.0)).all()
    assert (np.sign(rounded) == np.sign(x.numpy())).all()
    # Rounded up as often as x lies above the lower neighbour: Hoeffding, 2 e^(-2 runs z^2) = 1e-9 per entry.
    chance = (size - low) / quantum
    assert (np.abs(up.mean(0) - chance) < (np.log(2e9) / (2 * runs)) ** 0.5).all()
    assert np.abs((up - chance).mean()) < (np.log(2e9) / (2 * up.size)) ** 0.5


def test_accumulation_errors_have_mean_zero_and_variance_a_third():
    draws = mode(400)._uniform(normal(400, 50))
    assert draws.abs().max() <= 1
    assert draws.mean().abs() < 6 * (draws.numel() * 3) ** -0.5
    assert (3 * draws.square().mean() - 1).abs() < 0.05


def test_representable_values_stay():
    x = single(normal(4, 100))
    assert (mode(4).round(x) == x).all()
    special = torch.tensor([[0.0, -0.0, torch.inf, -torch.inf]], dtype=torch.float64)
    assert (mode(1).round(special) == special).all()
    assert mode(1).round(torch.full((1, 1), torch.nan, dtype=torch.float64)).isnan().all()


def test_equal_values_round_equally_in_coherent_runs_only():
    x = normal(1, 1).expand(2, 300).contiguous()
    rounding = mode(2, coherent=1)
    first, second = rounding.round(x), rounding.round(x)
    assert len(first[0].unique()) == 1
    assert (first[0] == second[0]).all()
    assert len(first[1].unique()) == 2
    assert (first[1] != second[1]).any()


def test_rounding_commutes_with_sign_and_powers_of_two():
    x, rounding = normal(1, 100), mode(1)
    assert (rounding.round(-x) == -rounding.round(x)).all()
    assert (rounding.round(8 * x) == 8 * rounding.round(x)).all()


def algorithm(a, b, g):
    lower = torch.linalg.solve_triangular(a @ a.mT, b, upper=False, unitriangular=True)
    return (g.cumsum(-1).exp().unsqueeze(-1) * lower + (a * a).sum(-1, keepdim=True)) @ b.mT


@pytest.mark.parametrize("coherent", [True, False])
def test_a_run_depends_on_its_own_seed_only(coherent):
    """Our kernels keep the batch outermost; the first run is the same alone and among others."""
    from importlib import import_module

    chunked = import_module("kernels.kda.chunked").chunked_kda
    inputs = {
        "q": normal(2, 20, 1, 4, seed=1),
        "k": normal(2, 20, 1, 4, seed=2) / 3,
        "v": normal(2, 20, 2, 3, seed=3),
        "g": -normal(2, 20, 2, 4, seed=4).abs(),
        "beta": normal(2, 20, 2, seed=5).sigmoid(),
    }
    results = {}
    for runs in (1, 3):
        tiled = {name: x.repeat(runs, *[1] * (x.ndim - 1)) for name, x in inputs.items()}
        with mode(runs, coherent=runs if coherent else 0):
            output, _ = chunked(**tiled, chunk_size=8)
        results[runs] = output.view(runs, 2, 20, 2, 3)
    assert (results[1][0] == results[3][0]).all()
    assert (results[3][0] != results[3][1]).any()
    assert (results[3][1] != results[3][2]).any()


def test_integer_arithmetic_is_exact():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-1, 2, (6, 5, 5), generator=generator).double() for _ in range(2))
    g = torch.zeros(6, 5, dtype=torch.float64)
    for arguments in ((a / 4, b, g), (a, b / 2, g)):
        with mode(3, coherent=1):
            rounded = algorithm(*arguments)
        assert (rounded == algorithm(*arguments)).all()


def test_sums_beyond_the_precision_are_not_exact():
    a = torch.full((2, 1, 3), 2.0**13 + 1, dtype=torch.float64)
    with mode(2):
        product = a @ a.mT
    assert (product != 3 * (2.0**13 + 1) ** 2).all()


def sequential(a, b):
    """The dot product in float32, term after term."""
    total = torch.zeros(a.shape[0])
    for x, y in zip(a.float().T, b.float().T, strict=True):
        total = total + x * y
    return total.double()


@pytest.mark.parametrize("terms", ["both signs", "positive", "cancelling"])
@pytest.mark.parametrize("n", [2, 4, 16, 64])
def test_product_predicts_a_sequential_sum(n, terms):
    a, b = single(normal(2000, n, seed=1)), single(normal(2000, n, seed=2))
    if terms == "positive":
        a, b = a.abs(), b.abs()
    if terms == "cancelling":
        half = n // 2
        a[:, half:], b[:, half:] = a[:, :half], -b[:, :half] * (1 + U)
        a, b = single(a), single(b)
    true = (a * b).sum(-1)
    observed = (sequential(a, b) - true).square().mean().sqrt()
    with mode(2000):
        product = (a.unsqueeze(1) @ b.unsqueeze(2)).flatten()
        total = (a * b).sum(-1)
    for predicted in (product, total):
        assert 0.5 < (predicted - true).square().mean().sqrt() / observed < 2.5


def test_forward_substitution_predicts_float32():
    a, b = single(normal(300, 24, 24, seed=1).tril(-1) / 5), single(normal(300, 24, 4, seed=2))
    true = torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)
    real = torch.linalg.solve_triangular(a.float(), b.float(), upper=False, unitriangular=True).double()
    with mode(300):
        model = torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)
    row = slice(8, None)
    observed, predicted = ((x - true)[:, row].norm() / true[:, row].norm() for x in (real, model))
    assert 0.3 < observed / predicted < 2


def test_running_sums_round_every_step():
    x = single(normal(3, 40))
    with mode(3):
        sums = x.cumsum(1)
    assert (single(sums) == sums).all()
    errors = (sums - x.cumsum(1)).abs()
    assert errors.max() > 0
    assert (errors <= 2 * U * x.cumsum(1).abs().cumsum(1) * (1 + 100 * U)).all()


def test_exp_errs_by_an_ulp_but_not_at_zero():
    x = torch.cat([normal(1, 500), torch.zeros(1, 1, dtype=torch.float64)], 1)
    with mode(1):
        y = x.exp()
    errors = ((y - x.exp()) / x.exp()).abs()
    # Rounding alone stays below one unit in the last place, 2u.
    assert 2 * U < errors.max() <= 4 * U
    assert y[0, -1] == 1


def test_in_place_operations_are_rounded():
    x = normal(2, 10)
    with mode(2):
        y = x.clone().mul_(3.0)
        y.add_(1.0)
    assert (single(y) == y).all()


def test_backward_substitution_is_forward_substitution_on_reversed_rows():
    """Upper and lower systems err alike, and neither is exact."""
    torch.manual_seed(0)
    lower = torch.randn(4, 12, 12, dtype=torch.float64).tril(-1) / 4
    right = torch.randn(4, 12, 3, dtype=torch.float64)
    errors = []
    for matrix, upper in ((lower, False), (lower.flip(-1, -2), True)):
        side = right.flip(-2) if upper else right
        true = torch.linalg.solve_triangular(matrix, side, upper=upper, unitriangular=True)
        with StochasticRounding(FLOAT32, 4, 2, 0):
            model = torch.linalg.solve_triangular(matrix, side, upper=upper, unitriangular=True)
        errors.append((model - true).abs().max() / true.abs().max())
    assert min(errors) > 2.0**-27
    assert max(errors) < 2.0**-20


def test_operators_made_of_torch_code_are_rounded_inside():
    """A custom operator that rounds nothing would predict no error; its parts are what a kernel computes."""
    from kernels.softmax.tiled import tiled_softmax

    torch.manual_seed(0)
    q, k, v = (torch.randn(4, 9, 1, 8, dtype=torch.float64) for _ in range(3))
    plain = tiled_softmax(q, k, v)[0]
    with StochasticRounding(FLOAT32, 4, 2, 0):
        asked = tiled_softmax(q.requires_grad_(), k, v)[0]
        (gradient,) = torch.autograd.grad(asked.sum((1, 2, 3)).unbind(), [q])
    exact = torch.autograd.grad(tiled_softmax(q, k, v)[0].sum(), [q])[0]
    for rounded, value in ((asked.detach(), plain), (gradient, exact)):
        error = (rounded - value).abs().max()
        assert 2.0**-28 < error < 2.0**-18


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.prod(1), "no rule for the torch operation prod"),
        (lambda x: x.sum(0), "mix the runs"),
        (lambda x: x[:3] * 1.1, "does not have the 4 runs"),
        (lambda x: x.sum() * 1.1, "mix the runs"),
        (
            lambda x: torch.linalg.solve_triangular(x.view(4, 2, 2), x.view(4, 2, 2), upper=True),
            "only a unit triangular matrix",
        ),
    ],
)
def test_what_has_no_rule_is_refused(function, message):
    x = normal(4, 4)
    with mode(4), pytest.raises(NotImplementedError, match=message):
        function(x)


def test_float64_cannot_be_modelled():
    with pytest.raises(ValueError, match="float64"):
        StochasticRounding(FLOAT64, 1, 1, 0)
