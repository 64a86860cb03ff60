"""Stochastic rounding: to neighbours, mean zero, exact where arithmetic is exact, one seed per run."""

import numpy as np
import pytest
import torch

from verify.audit.tolerance.predicted.rounding import StochasticRounding
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


ACCUMULATIONS = {
    "product, then sum": lambda c, a, b: (sequential(a, b).float() + c.float()).double(),
    "from the addend": lambda c, a, b: sequential(
        torch.cat([c[:, None], a], 1), torch.cat([torch.ones_like(c[:, None]), b], 1)
    ),
}


@pytest.mark.parametrize("accumulation", ACCUMULATIONS)
@pytest.mark.parametrize("addend", ["independent", "large", "cancelling"])
@pytest.mark.parametrize("n", [1, 2, 16, 64])
def test_added_product_predicts_both_ways_to_add(n, addend, accumulation):
    a, b = single(normal(2000, n, seed=1).abs()), single(normal(2000, n, seed=2))
    product = (a * b).sum(-1)
    c = single({"independent": normal(2000, seed=3), "large": 1000 + product, "cancelling": -product}[addend])
    true = c + product
    observed = (ACCUMULATIONS[accumulation](c, a, b) - true).square().mean().sqrt()
    with mode(2000):
        batched = torch.baddbmm(c[:, None, None], a.unsqueeze(1), b.unsqueeze(2)).flatten()
    predicted = (batched - true).square().mean().sqrt()
    # Rounding to nearest errs less than at random and than u x: a margin that neither way may use up.
    assert predicted > 1.2 * observed
    # Where terms cancel, and where they do not, one of the two ways errs as predicted.
    assert predicted < 3 * max((way(c, a, b) - true).square().mean().sqrt() for way in ACCUMULATIONS.values())


def test_products_with_factors_and_addends():
    """beta addend + alpha a b, in place and into a given tensor, with one matrix for all runs."""
    a, b, c = (
        single(normal(4, 6, 5, seed=1)),
        single(normal(4, 5, 3, seed=2)),
        single(normal(4, 6, 3, seed=3)),
    )
    flat, common = a.flatten(0, 1), b[0]
    cases = {
        "scaled": (lambda: torch.baddbmm(c, a, b, beta=0.3, alpha=-0.7), 0.3 * c - 0.7 * (a @ b)),
        "in place": (lambda: c.clone().baddbmm_(a, b), c + a @ b),
        "into a tensor": (lambda: torch.bmm(a, b, out=torch.empty_like(c)), a @ b),
        "without addend": (lambda: torch.baddbmm(c * torch.nan, a, b, beta=0), a @ b),
        "common": (lambda: a @ common, a @ common),
        "common, added": (
            lambda: torch.addmm(c.flatten(0, 1), flat, common),
            c.flatten(0, 1) + flat @ common,
        ),
        "common, one row added": (lambda: torch.addmm(c[0, 0], flat, common), c[0, 0] + flat @ common),
        "no terms": (lambda: torch.baddbmm(c, a[..., :0], b[:, :0]), c),
    }
    for name, (function, true) in cases.items():
        with mode(4):
            result = function()
        assert (single(result) == result).all(), name
        error = (result - true).abs().max()
        assert (error > 2.0**-27) == (name != "no terms"), name
        assert error < 2.0**-20, name


def test_an_addend_joins_the_exact_arithmetic():
    generator = torch.Generator().manual_seed(0)
    a, b, c = (torch.randint(-3, 4, (4, 5, 5), generator=generator).double() for _ in range(3))
    with mode(2):
        assert (torch.baddbmm(c, a, b) == c + a @ b).all()
        assert (torch.baddbmm(c + 2.0**-30, a, b) != c + 2.0**-30 + a @ b).any()


def test_several_operations_in_one_round_several_times():
    """A product that cancels against the addend errs by its own rounding, unless it is fused."""
    a, b = single(normal(2, 500, seed=1)), single(normal(2, 500, seed=2))
    c = single(a * b)
    cases = {
        "addcmul": (lambda: torch.addcmul(-c, a, b), a * b - c, (a * b).abs()),
        "addcmul in place": (lambda: (-c).addcmul_(a, b), a * b - c, (a * b).abs()),
        "addcmul scaled": (lambda: torch.addcmul(c, a, b, value=-1), c - a * b, (a * b).abs()),
        "addcdiv": (lambda: torch.addcdiv(-single(a / b), a, b), a / b - single(a / b), (a / b).abs()),
        "add": (lambda: torch.add(-single(0.3 * a), a, alpha=0.3), 0.3 * a - single(0.3 * a), 0.3 * a.abs()),
        "lerp": (
            lambda: torch.lerp(a, b, c),
            a + (b - a) * c,
            ((b - a) * c).abs() + (a + (b - a) * c).abs(),
        ),
    }
    for name, (function, true, size) in cases.items():
        with mode(2):
            result = function()
        errors = (result - true).abs() / size
        assert errors.max() > U / 2, name
        assert errors.max() < 5 * U, name


def test_added_at_an_index_rounds_every_sum():
    x, source = single(normal(3, 4, 6, seed=1)), single(normal(3, 5, 6, seed=2))
    index = torch.tensor([2, 0, 2, 2, 3])
    with mode(3):
        result = x.clone().index_add_(1, index, source)
    true = x.index_add(1, index, source)
    assert (result[:, 1] == x[:, 1]).all()
    assert (single(result) == result).all()
    assert 0 < (result - true).abs().max() < 8 * U * (x.abs().max() + 3 * source.abs().max())


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
        (lambda x: x.index_add(0, torch.tensor([0]), x[:1]), "mix the runs"),
        (lambda x: x[:3] @ x, "4 runs along its first axis"),
        (lambda x: torch.logaddexp(x, x), "no rule for the torch operation logaddexp"),
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
