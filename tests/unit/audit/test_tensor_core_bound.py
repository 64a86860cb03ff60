"""The proved bound with short factors and tensor cores: no bit-exact emulation of them exceeds it."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from tensor_cores import OnTensorCores

from verify.audit.case import Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS, kernel
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.tensor_core import core_named, multiplied
from verify.audit.tolerance.worst_case.chunk_scores import rounding_of
from verify.audit.tolerance.worst_case.rigorous import derivation, worst_case
from verify.numbers.formats import FLOAT16, format_named, round_array

KINDS = {kind.name: kind for kind in REAL_CLASSES}
# Every generation with every format, and every form of every kind of kernel.
CORES = (("volta", "float16"), ("ampere", "bfloat16"), ("hopper", "tf32"), ("ampere", "tf32"))
FORMS = (
    *(("delta", form) for form in ("recurrent", "chunked")),
    *(("gdn", form) for form in ("recurrent", "chunked")),
    *(("kda", form) for form in ("recurrent", "chunked")),
    *(("linear", form) for form in ("recurrent", "chunked")),
    *(("mamba2", form) for form in ("recurrent", "chunked")),
    ("softmax", "tiled"),
    ("linear_normalised", "chunked"),
)


def algorithm(form: str, products: str, accumulate: str, chunk: int = 32) -> Algorithm:
    usual = Algorithm(form, None if form == "recurrent" else chunk, "float32", "float32", "float32")
    return dataclasses.replace(usual, products=products, accumulate=accumulate)


def largest_ratio(case: Case, declared: Algorithm, bound_of: Algorithm) -> float:
    """The error of our kernel on emulated tensor cores over a bound, the largest."""
    factors = format_named(declared.products)
    core = core_named(declared.accumulate, factors)
    assert core is not None
    tensors = {f: torch.from_numpy(x).to(getattr(torch, case.dtype_of(f))) for f, x in case.arrays().items()}
    options: dict[str, object] = {"scale": case.scale}
    if declared.chunk_size is not None:
        options["chunk_size" if declared.form == "chunked" else "tile_size"] = declared.chunk_size
    if case.kind.stateful:
        options["output_final_state"] = True
    with torch.no_grad(), OnTensorCores(core, factors):
        output, state = kernel(case.mechanism, declared.form)(**tensors, **options)
    reference = float64_reference(case)
    bound = worst_case(case, reference, bound_of)
    off = np.linalg.norm(output.double().numpy() - reference.output, axis=-1) / bound.output
    if not case.kind.stateful:
        return float(off.max())
    ending = np.linalg.norm(state.double().numpy() - reference.final_state, axis=(-1, -2)) / bound.state
    return float(max(off.max(), ending.max()))


CASES = [
    (mechanism, form, name)
    for mechanism, form in FORMS
    for name in ("random", "constant-key-1", "logits-large")
    if KINDS[name].suits(MECHANISMS[mechanism])
]


@pytest.mark.parametrize(("mechanism", "form", "name"), CASES)
def test_no_kernel_on_tensor_cores_exceeds_it(mechanism: str, form: str, name: str) -> None:
    shape = Shape(B=1, T=10 if form == "recurrent" else 40, H=1, HV=1, K=20, V=4)
    case = draw_case(KINDS[name], mechanism, shape, dtype="float32", seed=7, with_state=True)
    for generation, products in CORES:
        declared = algorithm(form, products, generation)
        assert derivation(case.kind, declared) is not None
        assert largest_ratio(case, declared, declared) <= 1


@pytest.mark.parametrize("form", ["recurrent", "chunked"])
def test_without_the_declaration_it_is_exceeded(form: str) -> None:
    case = draw_case(
        KINDS["random"], "gdn", Shape(1, 20, 1, 1, 20, 4), dtype="float32", seed=7, with_state=True
    )
    declared = algorithm(form, "bfloat16", "hopper")
    plain = dataclasses.replace(declared, products="", accumulate="nearest")
    assert largest_ratio(case, declared, plain) > 1
    assert 1e-3 < largest_ratio(case, declared, declared) <= 1
    # Nor is more allowed than short factors ask for: 2^16 times the float32 bound at most.
    reference = float64_reference(case)
    wide, narrow = (worst_case(case, reference, x).output.max() for x in (declared, plain))
    assert 2**8 < wide / narrow < 2**17


def test_short_factors_are_all_in_the_bound_of_one_token() -> None:
    """Both factors of k v^T and of q S lose half a unit each, and may lose it in one direction."""
    case = draw_case(
        KINDS["positive"], "delta", Shape(1, 1, 1, 1, 20, 1), dtype="float32", seed=7, with_state=False
    )
    reference = float64_reference(case)
    bound = worst_case(case, reference, algorithm("recurrent", "bfloat16", "hopper"))
    assert (bound.output >= 4 * 2.0**-8 * np.abs(reference.output[..., 0])).all()


def test_it_says_what_it_assumes() -> None:
    found = derivation(MECHANISMS["kda"], algorithm("chunked", "tf32", "hopper"))
    assert found is not None
    assert "hopper tensor cores" in found.assumptions[-1]
    short = derivation(MECHANISMS["kda"], algorithm("chunked", "tf32", "nearest"))
    assert short is not None
    assert "tensor cores" not in short.assumptions[-1]
    assert derivation(MECHANISMS["dplr"], algorithm("chunked", "tf32", "hopper")) is None


def searched(a: np.ndarray, b: np.ndarray, products: str, accumulate: str) -> float:
    """The largest error over its bound that a search from one sum climbs to, both factors of a format."""
    factors = format_named(products)
    core = core_named(accumulate, factors)
    assert core is not None
    case = draw_case(
        KINDS["random"], "gdn", Shape(1, 1, 1, 1, 4, 4), dtype="float32", seed=0, with_state=False
    )
    rounding = rounding_of(case, algorithm("chunked", products, accumulate), 1.0)
    # Without the roundings of the factors, which are exact here, and of storing the result.
    n, rng = len(a), np.random.default_rng(n_seed(products, accumulate))
    allowed = math.expm1(float(rounding.loss(n, products=0)))

    def ratios(many: np.ndarray) -> np.ndarray:
        x = torch.from_numpy(round_array(factors, many))
        y = torch.from_numpy(round_array(factors, b))[:, None]
        found = multiplied(
            x[:, None, :], y.expand(len(many), n, 1), core, torch.zeros(len(many), 1, 1).double()
        )
        exact, sizes = x @ y, x.abs() @ y.abs()
        return ((found[:, 0] - exact).abs() / sizes / allowed)[:, 0].numpy()

    best, value = a, ratios(a[None])[0]
    for _ in range(60):
        moved = np.repeat(best[None], 32, 0)
        some = rng.random(moved.shape) < 2 / n
        moved = np.where(some, moved * (1 + rng.integers(-4, 5, moved.shape) * 2.0**-7), moved)
        moved = np.where(
            some & (rng.random(moved.shape) < 0.2), moved * 2.0 ** rng.integers(-2, 3, moved.shape), moved
        )
        found = ratios(moved)
        if found.max() > value:
            best, value = moved[found.argmax()], found.max()
    return float(value)


def n_seed(products: str, accumulate: str) -> int:
    return len(products) * 31 + len(accumulate)


@pytest.mark.parametrize("start", ["random", "one large"])
@pytest.mark.parametrize(("accumulate", "products"), CORES)
def test_a_search_for_the_worst_sum_stays_below(start: str, accumulate: str, products: str) -> None:
    core = core_named(accumulate, format_named(products))
    assert core is not None
    n, rng = 4 * core.width, np.random.default_rng(3)
    if start == "random":
        a, b = rng.standard_normal((2, n))
    else:
        # All but the first are cut to nothing at every step, and the sum loses its own last bits.
        a, b = np.full((2, n), 2.0 ** (-core.fraction / 2) * 0.999)
        a[0] = b[0] = 1.0
        if products == "float16":
            a, b = a * 2.0**4, b * 2.0**4
    worst = searched(a, b, products, accumulate)
    assert worst <= 1
    assert worst > (0.5 if start == "one large" else 0.01)


def test_factors_in_float16_keep_their_subnormals() -> None:
    """What rounding a factor below 2^-14 loses is at most half of the smallest subnormal: allowed."""
    case = draw_case(
        KINDS["random"], "gdn", Shape(1, 1, 1, 1, 4, 4), dtype="float32", seed=0, with_state=False
    )
    rounding = rounding_of(case, algorithm("chunked", "float16", "volta"), 1.0)
    x = np.array([2.0**-14 * 1.3, 2.0**-20 * 1.49, 2.0**-26])
    assert (np.abs(round_array(FLOAT16, x) - x) <= rounding.tiny / 4).all()
    assert (
        np.abs(round_array(FLOAT16, x) - x)
        > rounding_of(case, algorithm("chunked", "tf32", "volta"), 1.0).tiny
    ).any()
