"""Declared tensor cores: what their sums lose is predicted, bias and spread, and only then allowed."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import torch
from tensor_cores import OnTensorCores

from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.judge import Judgement, judge
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.bounds import quantile, tolerance
from verify.audit.tolerance.predicted.prediction import Algorithm, Prediction
from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.audit.tolerance.tensor_core import Biased, ProductRounding, core_named, multiplied
from verify.checkers import aligned_sum
from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT32, TF32, Format, round_array

GENERATIONS = ("volta", "ampere", "hopper")
U = 2.0**-24


def core(name: str, factors: Format | None = None):
    found = core_named(name, factors)
    assert found is not None
    return found


def product(a, b, made, addend=None):
    return multiplied(a, b, made, torch.zeros_like(a @ b) if addend is None else addend)


def draws(kind: str, factors: Format, rows: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(n)
    a, b = (round_array(factors, rng.standard_normal((rows, n))) for _ in range(2))
    if kind == "positive":
        a, b = np.abs(a), np.abs(b)
    if kind == "spread":
        a = round_array(factors, a * 2.0 ** rng.integers(-20, 20, (rows, n)))
    return torch.from_numpy(a)[:, None], torch.from_numpy(b)[:, :, None]


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("factors", [BFLOAT16, TF32])
def test_the_simulation_is_the_model_of_the_claim(generation: str, factors: Format) -> None:
    """Against the checker of kernel.tensor-core-sum, which computes in rationals, step by step."""
    made = core(generation, factors)
    a, b = draws("spread", factors, 5, 2 * made.width + 1)
    found = product(a, b, made)
    for row in range(len(a)):
        total = Fraction(0)
        pairs = [
            (Fraction(x), Fraction(y)) for x, y in zip(a[row, 0].tolist(), b[row, :, 0].tolist(), strict=True)
        ]
        for start in range(0, len(pairs), made.width):
            step = pairs[start : start + made.width]
            total = aligned_sum._step(step, total, made.fraction, 24, -126)
        assert total == Fraction(found[row, 0, 0].item())


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("kind", ["both signs", "positive", "spread"])
@pytest.mark.parametrize("n", [1, 7, 64, 300])
def test_no_sum_errs_by_more_than_its_steps(generation: str, kind: str, n: int) -> None:
    made = core(generation)
    a, b = draws(kind, BFLOAT16, 200, n)
    true, sizes = (a @ b).flatten(), (a.abs() @ b.abs()).flatten()
    growth = float((1 + made.one) ** made.steps(n) - 1)
    share = (product(a, b, made).flatten() - true).abs() / sizes / growth
    assert share.max() < 1
    if kind == "positive" and n == 300:
        assert share.max() > 0.01


def predicted(
    made, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Per sum what is cut off in order, and one random draw."""
    arguments = (a, b) if c is None else (c, a, b)
    function = torch.bmm if c is None else torch.baddbmm
    true = function(*arguments).flatten()
    with Biased(FLOAT32, 1, 0, 0, core=made):
        shift = function(*arguments).flatten() - true
    with ProductRounding(FLOAT32, len(a), len(a), 0, core=made):
        drawn = function(*arguments).flatten() - true
    return shift, drawn


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("kind", ["both signs", "positive"])
@pytest.mark.parametrize("n", [4, 48, 512])
@pytest.mark.parametrize("addend", [False, True])
def test_bias_and_spread_are_predicted(generation: str, kind: str, n: int, addend: bool) -> None:
    made = core(generation)
    a, b = draws(kind, TF32, 1500, n)
    c = None
    if addend:
        c = torch.from_numpy(round_array(FLOAT32, 10 * (a @ b).numpy()))
    true = (a @ b + (0 if c is None else c)).flatten()
    order = torch.randperm(n, generator=torch.manual_seed(0))
    error = product(a[..., order], b[:, order], made, c).flatten() - true
    shift, drawn = predicted(made, a, b, c)
    toward_zero = -(error * true.sign()).mean()
    expected = -(shift * true.sign()).mean()
    noise = 5 * (error.square().mean() / len(error)) ** 0.5
    # Another order of the terms: the same bias, and no more besides than is drawn.
    assert abs(toward_zero - expected) <= noise
    if kind == "positive" and n > 4:
        assert toward_zero > 0.2 * U * true.abs().mean()
    # Two orders with the same bias differ by their own parts alone.
    rest = ((error - shift).square().mean() / 2).sqrt()
    spread = drawn.square().mean().sqrt()
    assert 0.5 * rest < spread
    if n > 4:  # else next to nothing is cut
        assert spread < 8 * error.square().mean().sqrt()


def test_a_long_sum_of_one_sign_needs_the_declaration() -> None:
    """The bias grows like n, the tolerance of sums that round to nearest like its root."""
    made, n = core("volta"), 1 << 15
    a, b = draws("positive", BFLOAT16, 4, n)
    error = (product(a, b, made) - a @ b).abs().flatten()
    factor = quantile(1e-9 / 1000, 24)

    def deviation(mode: StochasticRounding) -> torch.Tensor:
        with mode:
            rounded = torch.bmm(a.repeat(48, 1, 1), b.repeat(48, 1, 1))
        return ((rounded.view(48, 4) - (a @ b).flatten()).square().sum(0) / 24).sqrt()

    plain = factor * deviation(StochasticRounding(FLOAT32, 48, 24, 0))
    assert (error > plain).all()
    shift, _ = predicted(made, a, b, None)
    declared = factor * deviation(ProductRounding(FLOAT32, 48, 24, 0, core=made)) + shift.abs()
    assert (error < declared).all()


def case_of(name: str, dtype: str = "float32") -> Case:
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    return draw_case(kind, "gdn", Shape(1, 40, 1, 2, 32, 8), dtype=dtype, seed=1, with_state=True)


def declared(products: str = "compute", accumulate: str = "nearest") -> Convention:
    ours = Convention.load("ours", "gdn", "chunked_gdn")
    return dataclasses.replace(
        ours, chunk_size=16, products=products, accumulate=accumulate, chunk_argument=""
    )


def on_tensor_cores(case: Case, generation: str, factors: Format) -> Outcome:
    from kernels.gdn.chunked import chunked_gdn

    tensors = {f: torch.from_numpy(x).to(getattr(torch, case.dtype_of(f))) for f, x in case.arrays().items()}
    with OnTensorCores(core(generation, factors), factors):
        output, state = chunked_gdn(**tensors, scale=case.scale, output_final_state=True, chunk_size=16)
    assert state is not None
    return Outcome(output.double().numpy(), state.double().numpy(), case.dtype, "float32", None, 0.0)


def judged(case: Case, outcome: Outcome, convention: Convention) -> Judgement:
    return judge(case, outcome, Bench(convention, 100).yardstick(case))


@pytest.mark.parametrize("name", ["random", "positive", "constant-key-0.97"])
@pytest.mark.parametrize(
    ("generation", "products"), [("hopper", "tf32"), ("volta", "float16"), ("ampere", "bfloat16")]
)
def test_a_kernel_on_tensor_cores_holds_where_they_are_declared(
    name: str, generation: str, products: str
) -> None:
    case = case_of(name)
    factors = {"tf32": TF32, "bfloat16": BFLOAT16, "float16": dataclasses.replace(TF32, name="float16")}[
        products
    ]
    outcome = on_tensor_cores(case, generation, factors)
    held = judged(case, outcome, declared(products, generation))
    assert not held.failed
    assert held.output is not None
    assert 0.1 < (held.output.error / held.output.deviation).max() < 5
    assert judged(case, outcome, declared()).failed


def test_the_bias_is_part_of_the_tolerance_and_not_of_the_deviation() -> None:
    case = case_of("positive")
    bench = [Bench(declared("bfloat16", name), 100).yardstick(case) for name in ("nearest", "hopper")]
    nearest, hopper = bench
    assert np.allclose(hopper.output_deviation, nearest.output_deviation, rtol=0.5)
    assert (hopper.output_tolerance > nearest.output_tolerance * 0.5).all()
    assert nearest.worst_case is not None
    assert hopper.worst_case is not None
    # A step of sixteen products may err by 10.5 units of roundoff, sixteen additions by sixteen.
    assert (hopper.worst_case.output < nearest.worst_case.output).all()


def test_a_bias_is_added_as_it_is() -> None:
    """Not times the quantile that the deviation is multiplied by."""
    case, algorithm = case_of("random"), Algorithm.of(declared(), "float32")
    reference = float64_reference(case)
    rows, states = reference.output_error, reference.state_error
    plain, biased = (
        tolerance(case, Prediction(rows, states, 24, *bias), reference, algorithm, cells=1)
        for bias in ((), (np.full_like(rows, 0.25), np.full_like(states, 0.5)))
    )
    assert np.allclose(biased.output - plain.output, 0.25, rtol=1e-12)
    assert np.allclose(biased.state - plain.state, 0.5, rtol=1e-12)


def test_integers_are_not_exact_in_a_shorter_format() -> None:
    """A state of 257 is no bfloat16: integer cells are held to the tolerance."""
    from verify.audit.inputs.integers import draw_integer_case

    case = draw_integer_case(
        "gdn", Shape(1, 8, 1, 1, 4, 4), dtype="float32", seed=0, with_state=False, resets=False
    )
    assert Bench(declared(), 100).yardstick(case).kind == "exact"
    assert Bench(declared("bfloat16"), 100).yardstick(case).kind == "float64"


def test_tensor_cores_need_short_factors() -> None:
    with pytest.raises(RequestError, match="is of factors in tf32, bfloat16 or float16"):
        declared("compute", "hopper").check()
    declared("tf32", "hopper").check()


def test_generations() -> None:
    assert [core(name).width for name in GENERATIONS] == [4, 8, 16]
    assert [core(name, TF32).width for name in GENERATIONS] == [4, 4, 8]
    assert [core(name).fraction for name in GENERATIONS] == [23, 24, 25]
    assert core_named("nearest", None) is None
    assert core("hopper").steps(17) == 2
