"""The bounds of DPLR and GDN-2: no way of computing them and no direction of its errors exceeds them."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from sloppy import DECAYS, Arithmetic
from sloppy_directions import WRITES, chunked, recurrent
from test_chunked_bound import KINDS, USUAL, U, drawn, ours, ratio, signs

from verify.audit.case import Case, Shape
from verify.audit.mechanism import MECHANISMS, kernel
from verify.audit.reference.ball import balls
from verify.audit.reference.results import float64_reference
from verify.audit.reference.transition import Setting
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.rigorous import worst_case

DIRECTED = [name for name, kind in MECHANISMS.items() if kind.directed]
TOKEN_BY_TOKEN = dataclasses.replace(USUAL, form="recurrent", chunk_size=None)
STRUCTURED = (
    "random",
    "directions-apart",
    "constant-key-1",
    "constant-key-2",
    "gate-strong",
    "gate-mixed",
    "predicted-value",
)
NAMED = [(m, n) for m in DIRECTED for n in STRUCTURED if KINDS[n].suits(MECHANISMS[m])]
SMALL = Shape(B=1, T=42, H=1, HV=2, K=3, V=2)


def computed(case: Case, algorithm: Algorithm) -> tuple[np.ndarray, np.ndarray]:
    """By our kernel, in float32."""
    if algorithm.chunk_size is not None:
        return ours(case, algorithm.chunk_size)
    arrays = {n: torch.from_numpy(x).float() for n, x in case.arrays().items()}
    output, state = kernel(case.mechanism, "recurrent")(**arrays, scale=case.scale, output_final_state=True)
    return output.double().numpy(), state.double().numpy()


def readings(case: Case) -> tuple[bool, ...]:
    """GDN-2 may read before the decay what it is defined to read after it."""
    return (False,) if case.directions.before_decay else (False, True)


@pytest.mark.parametrize(("mechanism", "name"), NAMED)
def test_token_by_token_errors_that_conspire_do_not_exceed_it(mechanism: str, name: str) -> None:
    case = drawn(mechanism, name, SMALL)
    bound, largest = worst_case(case, float64_reference(case), TOKEN_BY_TOKEN), 0.0
    for sign, early in itertools.product(signs(), readings(case)):
        largest = max(largest, ratio(*recurrent(case, Arithmetic(U, sign), early), case, bound))
    assert 1 / 10 < largest <= 1


# Every way of adding what is read with every inverse, and every decay with either; two for each case.
WAYS = tuple(
    zip(WRITES, itertools.cycle(DECAYS), ("left", "rows", "right", "blockwise", "left"), strict=False)
)
CHUNKED = [(*case, WAYS[i % 5], WAYS[(i + 2) % 5]) for i, case in enumerate(NAMED)]


@pytest.mark.parametrize(("mechanism", "name", "narrow", "wide"), CHUNKED)
def test_in_chunks_errors_that_conspire_do_not_exceed_it(
    mechanism: str, name: str, narrow: tuple[str, str, str], wide: tuple[str, str, str]
) -> None:
    case, largest = drawn(mechanism, name, SMALL), 0.0
    for (writes, decays, inverse), rows in ((narrow, 8), (wide, 40)):
        algorithm = dataclasses.replace(
            USUAL,
            chunk_size=rows,
            gate_sums="running" if decays == "running" else "segment",
            corrections="factored" if writes in ("factors", "ahead") else "solved",
        )
        bound = worst_case(case, float64_reference(case), algorithm)
        for sign, early in itertools.product(signs(), readings(case)):
            how = (inverse if rows > 16 else "rows", writes, decays, early)
            largest = max(largest, ratio(*chunked(case, rows, Arithmetic(U, sign), *how), case, bound))
    assert 1 / 20 < largest <= 1


def test_what_is_read_before_a_decay_that_leaves_nothing_is_bounded() -> None:
    """Of the state only what is read survives, so all of its error comes from there."""
    case = drawn("dplr", "random", SMALL)
    case = case.replace(g=np.full_like(case.g, -40.0), a=case.b, k=0 * case.k)
    reference = float64_reference(case)
    slow = worst_case(case, reference, TOKEN_BY_TOKEN)
    quick = worst_case(case, reference, dataclasses.replace(USUAL, chunk_size=8))
    for sign in signs():
        assert ratio(*recurrent(case, Arithmetic(U, sign), False), case, slow) <= 1
        found = chunked(case, 8, Arithmetic(U, sign), "rows", "inverse", "sum", False)
        assert ratio(*found, case, quick) <= 1
    up = Arithmetic(U, np.ones)
    assert ratio(*recurrent(case, up, False), case, slow) > 1 / 10


@pytest.mark.parametrize("mechanism", DIRECTED)
def test_a_state_that_only_decays_errs_by_no_more(mechanism: str) -> None:
    case = drawn(mechanism, "random", SMALL)
    case = case.replace(k=0 * case.k, b=0 * case.b)
    algorithms = (TOKEN_BY_TOKEN, dataclasses.replace(USUAL, chunk_size=3))
    slow, quick = (worst_case(case, float64_reference(case), x) for x in algorithms)
    for sign in signs():
        assert ratio(*recurrent(case, Arithmetic(U, sign), False), case, slow) <= 1
        found = chunked(case, 3, Arithmetic(U, sign), "rows", "inverse", "parts", False)
        assert ratio(*found, case, quick) <= 1
    assert ratio(*recurrent(case, Arithmetic(U, np.ones), False), case, slow) > 1 / 5


@pytest.mark.parametrize("mechanism", DIRECTED)
@pytest.mark.parametrize(("chunk", "most"), [(16, 5e3), (64, 3e4)])
def test_it_stays_near_the_errors_of_our_kernels(mechanism: str, chunk: int, most: float) -> None:
    for name in ("constant-key-1", "predicted-value"):
        case = drawn(mechanism, name, Shape(B=1, T=chunk, H=1, HV=2, K=64, V=64))
        bound = worst_case(case, float64_reference(case), dataclasses.replace(USUAL, chunk_size=chunk))
        output, state = ours(case, chunk)
        assert 0 < ratio(output, state, case, bound) <= 1
        error = np.linalg.norm(output - float64_reference(case).output, axis=-1)
        assert bound.output.max() < most * error.max()


def uneven(shape: Shape) -> Case:
    """GDN-2 that erases half of the channels twice and the others not at all: norms of about 1.4 a token."""
    case = drawn("gdn2", "gate-zero", shape)
    return case.replace(b=np.random.default_rng(0).choice([0.0, 2.0], case.b.shape))


@pytest.mark.parametrize("form", ["recurrent", "chunked"])
def test_it_does_not_grow_with_the_norms_of_transitions(form: str) -> None:
    """Each transition lengthens something; all of them together lengthen nothing by much."""
    case = uneven(Shape(B=1, T=64, H=1, HV=1, K=32, V=8))
    norms = np.prod(Setting.of(case).norm, axis=1)
    reference = float64_reference(case)
    algorithm = USUAL if form == "chunked" else TOKEN_BY_TOKEN
    bound = worst_case(case, reference, algorithm)
    size = np.linalg.norm(reference.output, axis=-1).max()
    # By the norms alone, one rounding of the first state could come to more than the output.
    assert norms.min() * U > 10
    assert bound.output.max() < 1e-2 * size
    assert reference.output_error.max() < 1e-11 * size


def test_balls_confirm_the_reference_where_norms_say_nothing() -> None:
    case = uneven(Shape(B=1, T=64, H=1, HV=1, K=8, V=2))
    reference, (exact, final) = float64_reference(case), balls(case)
    off = np.array(
        [float(abs(x - y).upper()) for x, y in zip(exact.flat, reference.output.flat, strict=True)]
    )
    rows = np.linalg.norm(off.reshape(reference.output.shape), axis=-1)
    assert (rows <= reference.output_error).all()
    ends = [float(abs(x - y).upper()) for x, y in zip(final.flat, reference.final_state.flat, strict=True)]
    assert np.linalg.norm(ends) <= reference.state_error.max()


@pytest.mark.parametrize("mechanism", DIRECTED)
def test_gates_without_end_leave_it_finite(mechanism: str) -> None:
    case = drawn(mechanism, "random", Shape(B=1, T=20, H=1, HV=1, K=4, V=3))
    gates = case.g.copy()
    gates[:, 3], gates[:, 7, :, 1], gates[:, 11] = -(2.0**120), -(2.0**60), -90.0
    case = case.replace(g=gates)
    reference = float64_reference(case)
    for algorithm in (USUAL, TOKEN_BY_TOKEN):
        bound = worst_case(case, reference, algorithm)
        assert ratio(*computed(case, algorithm), case, bound) <= 1
        assert bound.output.max() < 1e-3
    # Differences of running sums lose every digit there, and nothing finite is said.
    assert np.isinf(worst_case(case, reference, dataclasses.replace(USUAL, gate_sums="running")).output).any()


@pytest.mark.parametrize("mechanism", DIRECTED)
@pytest.mark.parametrize("tokens", [0, 1, 17])
def test_any_number_of_tokens_is_bounded(mechanism: str, tokens: int) -> None:
    case = drawn(mechanism, "random", Shape(B=2, T=tokens, H=1, HV=2, K=1, V=1))
    reference = float64_reference(case)
    for algorithm in (USUAL, TOKEN_BY_TOKEN):
        bound = worst_case(case, reference, algorithm)
        assert bound.output.shape == (2, tokens, 2)
        assert np.isfinite(bound.state).all()
        output, state = computed(case, algorithm)
        assert (np.linalg.norm(state - reference.final_state, axis=(-1, -2)) <= bound.state).all()
        if tokens:
            assert ratio(output, state, case, bound) <= 1


@pytest.mark.parametrize("mechanism", DIRECTED)
def test_what_is_declared_matters(mechanism: str) -> None:
    """Stored factors cancel where the state predicts the value; running sums lose what follows a reset."""
    shape = Shape(B=1, T=32, H=1, HV=1, K=8, V=4)

    def bound(name: str, **changes: str) -> float:
        case, algorithm = drawn(mechanism, name, shape), dataclasses.replace(USUAL, **changes)
        return float(worst_case(case, float64_reference(case), algorithm).output.max())

    if mechanism == "gdn2":
        assert bound("predicted-value", corrections="factored") > 1.5 * bound("predicted-value")
    assert bound("gate-reset", gate_sums="running") > 20 * bound("gate-reset")
    assert bound("random", storage_dtype="bfloat16") > 1000 * bound("random")
