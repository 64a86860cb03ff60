"""The rigorous bound of gradients: errors in no direction exceed it, and what exceeds it is refuted."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from directed_rounding import DIRECTIONS, WITHIN_ONE_ROUNDOFF, Directed

from verify.audit import mechanism
from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.gradient.confirm import ball_gradients
from verify.audit.gradient.functional import Cotangent, cotangent, norm
from verify.audit.gradient.judge import judge_gradients
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.confirm import compare
from verify.audit.tolerance.predicted import model
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.gradient.rigorous import derivation, worst_gradients

KINDS = {kind.name: kind for kind in REAL_CLASSES}
RECURRENT = Algorithm("recurrent", None, "float32", "float32", "float32")
CHUNKED = Algorithm("chunked", 8, "float32", "float32", "float32")
TILED = Algorithm("tiled", 5, "float32", "float32", "float32")
SMALL = Shape(B=2, T=11, H=1, HV=2, K=4, V=3)
SMALLEST = Shape(B=8, T=1, H=1, HV=1, K=1, V=1)
STRUCTURED = ("random", "constant-key-1", "gate-strong", "gate-mixed")


def drawn(
    name: str, kind: str, shape: Shape, dtype: str = "float32", seed: int = 5
) -> tuple[Case, Cotangent]:
    stateful = MECHANISMS[name].stateful
    case = draw_case(KINDS[kind], name, shape, dtype=dtype, seed=seed, with_state=stateful)
    return case, cotangent(case, stateful)


def bound(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, np.ndarray]:
    found = worst_gradients(case, functional, float64_gradients(case, functional), algorithm)
    assert found is not None
    return found


def ratios(
    found: dict[str, np.ndarray], case: Case, functional: Cotangent, algorithm: Algorithm
) -> dict[str, float]:
    """By field the largest error over the bound; each of ``found`` may have further axes before the batch."""
    exact, limits = float64_gradients(case, functional).values, bound(case, functional, algorithm)
    assert set(found) == set(limits)
    over = {}
    for field, limit in limits.items():
        error = norm(case, field, found[field].reshape(-1, *exact[field].shape) - exact[field])
        over[field] = float(np.where(error == 0, 0.0, error / limit).max())
    return over


def directed(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, np.ndarray]:
    """Gradients of our kernel, every operation of it, forward and backward, erring as far as it may."""
    return model.run(case, algorithm, WITHIN_ONE_ROUNDOFF, DIRECTIONS, 7, functional, mode=Directed)


@pytest.mark.parametrize("name", ["linear", "simple_gla", "delta", "gdn", "kda"])
@pytest.mark.parametrize(
    ("algorithm", "least"),
    [
        (RECURRENT, 0.05),
        (CHUNKED, 0.02),
        (dataclasses.replace(CHUNKED, chunk_size=3), 0.02),
        (dataclasses.replace(CHUNKED, gate_sums="running", chunk_size=20), 0.0),
    ],
)
def test_errors_that_conspire_do_not_exceed_it(name: str, algorithm: Algorithm, least: float) -> None:
    largest = dict.fromkeys(MECHANISMS[name].fields, 0.0)
    for kind, shape in (*((kind, SMALL) for kind in STRUCTURED), ("random", SMALLEST)):
        if KINDS[kind].suits(MECHANISMS[name]):
            case, functional = drawn(name, kind, shape)
            over = ratios(directed(case, functional, algorithm), case, functional, algorithm)
            largest = {field: max(x, over[field]) for field, x in largest.items()}
    assert max(largest.values()) <= 1
    # Nor is it far beyond reach, of any field.
    assert min(largest.values()) > least


@pytest.mark.parametrize("name", ["softmax", "softmax_window", "softmax_sink"])
def test_nor_in_attention(name: str) -> None:
    largest = 0.0
    for kind in ("random", "logits-large", "logits-offset", "logits-rising", "scale-negative"):
        case, functional = drawn(name, kind, SMALL)
        over = ratios(directed(case, functional, TILED), case, functional, TILED)
        largest = max(largest, *over.values())
    assert 0.02 < largest <= 1


@pytest.mark.parametrize("algorithm", [RECURRENT, CHUNKED])
def test_the_shortest_kernel_has_room_for_each_of_its_roundings(algorithm: Algorithm) -> None:
    """One token, one channel, one value: each gradient is a product of four numbers, one of them the scale,
    which is rounded itself."""
    case, _ = drawn("linear", "random", SMALLEST)
    case = case.replace(initial_state=None, scale=0.3)
    functional = Cotangent(np.full(case.v.shape, 0.75), np.zeros((8, 1, 1, 1)))
    exact, limits = float64_gradients(case, functional).values, bound(case, functional, algorithm)
    for field, limit in limits.items():
        assert (limit >= ((1 + 2.0**-24) ** 4 - 1) * np.abs(exact[field][..., 0])).all()


def by_the_key(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """KDA with the strength on the key, sums of products written out, as many kernels have it; HV = H."""
    outputs = []
    for query, key, value, gate, strength in zip(*(x.unbind(1) for x in (q, k, v, g, beta)), strict=True):
        state = state * gate.exp().unsqueeze(-1)
        miss = value - (key.unsqueeze(-1) * state).sum(-2)
        state = state + (strength.unsqueeze(-1) * key).unsqueeze(-1) * miss.unsqueeze(-2)
        outputs.append((query.unsqueeze(-1) * state).sum(-2))
    return torch.stack(outputs, 1), state


def test_another_order_of_the_same_operations_does_not_exceed_it() -> None:
    for kind in STRUCTURED:
        case, functional = drawn("kda", kind, dataclasses.replace(SMALL, HV=1))
        copies = {
            name: torch.from_numpy(np.tile(x, (DIRECTIONS, *[1] * (x.ndim - 1)))).requires_grad_()
            for name, x in case.arrays().items()
        }
        with Directed(WITHIN_ONE_ROUNDOFF, DIRECTIONS, 0, 3):
            arguments = [copies[name] for name in ("q", "k", "v", "g", "beta", "initial_state")]
            output, state = by_the_key(arguments[0] * case.scale, *arguments[1:])
            weights = [
                torch.from_numpy(np.tile(x, (DIRECTIONS, 1, 1, 1)))
                for x in (functional.output, functional.state)
            ]
            found = torch.autograd.grad([output, state], list(copies.values()), weights)
        gradients = {name: x.numpy() for name, x in zip(copies, found, strict=True)}
        assert 0.01 < max(ratios(gradients, case, functional, RECURRENT).values()) <= 1


def ours(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, np.ndarray]:
    """Gradients of our kernel in the case's dtype."""
    options: dict[str, Any] = {"scale": case.scale}
    if algorithm.chunk_size is not None:
        options["tile_size" if algorithm.form == "tiled" else "chunk_size"] = algorithm.chunk_size
    if case.kind.stateful:
        options["output_final_state"] = True
    inputs = {
        name: torch.from_numpy(x).to(getattr(torch, case.dtype_of(name))).requires_grad_()
        for name, x in case.arrays().items()
    }
    output, state = mechanism.kernel(case.mechanism, algorithm.form)(**inputs, **options)
    total = (output.double() * torch.from_numpy(functional.output)).sum()
    if case.kind.stateful:
        total = total + (state.double() * torch.from_numpy(functional.state)).sum()
    found = torch.autograd.grad(total, list(inputs.values()))
    return {name: x.double().numpy() for name, x in zip(inputs, found, strict=True)}


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("kda", RECURRENT), ("kda", CHUNKED), ("gdn", CHUNKED), ("simple_gla", CHUNKED), ("softmax", TILED)],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_balls_show_that_our_gradients_lie_within_it(name: str, algorithm: Algorithm, dtype: str) -> None:
    from flint import ctx

    case, functional = drawn(name, "random", Shape(B=1, T=10, H=1, HV=2, K=3, V=2), dtype)
    found, limits = ours(case, functional, algorithm), bound(case, functional, algorithm)
    with ctx.workprec(128):
        exact = ball_gradients(case, functional)
        rows = [
            (
                list(np.atleast_1d(np.asarray(exact[field][index], dtype=object)).ravel()),
                np.atleast_1d(found[field][index]).ravel().tolist(),
                float(limit[index]),
            )
            for field, limit in limits.items()
            for index in np.ndindex(limit.shape)
        ]
        confirmation = compare(rows)
    assert (confirmation.contradicted, confirmation.undecided) == (0, 0)
    assert confirmation.confirmed == len(rows)


@pytest.mark.parametrize(("algorithm", "most"), [(RECURRENT, 1e4), (CHUNKED, 1e6)])
def test_it_stays_near_the_errors_of_our_kernels(algorithm: Algorithm, most: float) -> None:
    for kind in ("random", "constant-key-0.9", "gate-strong"):
        case, functional = drawn("kda", kind, Shape(B=1, T=24, H=1, HV=1, K=16, V=16))
        over = ratios(ours(case, functional, algorithm), case, functional, algorithm)
        assert 1 / most < min(over.values())
        assert max(over.values()) <= 1


def test_a_coarser_format_and_sums_that_run_widen_it() -> None:
    case, functional = drawn("kda", "random", SMALL, "float64")
    for algorithm in (RECURRENT, CHUNKED):
        single = bound(case, functional, algorithm)
        double = bound(case, functional, dataclasses.replace(algorithm, compute_dtype="float64"))
        for field, limit in single.items():
            assert (limit > 1e7 * double[field]).all()
    running = bound(case, functional, dataclasses.replace(CHUNKED, gate_sums="running"))
    assert (running["g"] > 1.2 * bound(case, functional, CHUNKED)["g"]).all()


def test_no_tokens_leave_the_gradient_of_the_state() -> None:
    for algorithm in (RECURRENT, CHUNKED):
        case, functional = drawn("kda", "random", dataclasses.replace(SMALL, T=0))
        found = bound(case, functional, algorithm)
        assert set(found) == {"initial_state"}
        assert (found["initial_state"] < 1e-14).all()


def test_it_holds_where_steps_stretch() -> None:
    case, functional = drawn("delta", "random", SMALL)
    long = case.replace(k=case.k * 8)
    for algorithm in (RECURRENT, CHUNKED):
        over = ratios(directed(long, functional, algorithm), long, functional, algorithm)
        assert 0 < max(over.values()) <= 1


def test_it_is_derived_where_the_algorithm_is_one_of_those_analysed() -> None:
    for name, algorithm, expected in (
        ("kda", RECURRENT, True),
        ("kda", CHUNKED, True),
        ("kda", dataclasses.replace(CHUNKED, corrections="factored"), False),
        ("simple_gla", dataclasses.replace(CHUNKED, corrections="factored"), True),
        ("kda", dataclasses.replace(CHUNKED, inverse="doubling"), False),
        ("kda", dataclasses.replace(CHUNKED, products="tf32"), False),
        ("kda", dataclasses.replace(CHUNKED, accumulate="hopper"), False),
        ("kda", dataclasses.replace(CHUNKED, beta_form="sigmoid"), False),
        ("softmax", TILED, True),
        ("linear_normalised", CHUNKED, False),
        ("dplr", RECURRENT, False),
        ("gdn2", CHUNKED, False),
    ):
        found = derivation(MECHANISMS[name], algorithm)
        assert (found is not None) is expected, (name, algorithm)
        case, functional = drawn(name, "random", Shape(B=1, T=3, H=1, HV=1, K=2, V=2))
        limits = worst_gradients(case, functional, float64_gradients(case, functional), algorithm)
        assert (limits is not None) is expected


def test_gradients_cut_instead_of_rounded_are_refuted_by_it_alone() -> None:
    """In bfloat16, cutting errs by up to twice what rounding does: far inside the probabilistic tolerance."""
    case, _ = drawn("kda", "random", dataclasses.replace(SMALL, K=16, V=16), "bfloat16")
    bench = Bench(Convention.load("ours", "kda", "recurrent_kda"), 1, runs=8)
    yardstick = bench.gradient_yardstick(case)
    rounded = ours(case, yardstick.functional, RECURRENT)
    assert judge_gradients(case, outcome(rounded), yardstick).verdict == "sampled"
    exact = yardstick.values["v"]
    unit = np.ldexp(2.0**-7, np.frexp(exact)[1] - 1)
    cut = rounded | {"v": np.trunc(exact / unit) * unit}
    judged = judge_gradients(case, outcome(cut), yardstick)
    assert judged.measures["v"].worst_ratio < 0.5
    assert (judged.verdict, judged.failing, judged.beyond_worst_case) == ("refuted", ("v",), ("v",))
    assert judged.entry()["worst_case"]["v"] > 1
    # Nothing is run again to say so.
    (finding,) = explain_gradients(None, [judged])
    assert finding.reason == "gradients off by more than any rounding"
    assert "of v" in finding.evidence


def outcome(gradients: dict[str, np.ndarray]) -> Outcome:
    return Outcome(None, None, "", "", None, 0.0, gradients)


def test_a_slice_of_the_campaign_lies_within_it() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
    import bench_gradient_soundness as bench

    entries = [bench.check(bench.plan(1, number, batch=2), with_balls=number < 2) for number in range(5)]
    assert all(
        x <= 1 for e in entries for part in ("over_bound", "directed") for x in (e[part] or {}).values()
    )
    assert [e["balls"][1:] for e in entries[:2]] == [[0, 0], [0, 0]]
    text = bench.section(entries, 1, [])
    assert text.count("beyond the bound **0**") == 2
    broken = {**entries[0], "over_bound": {"q": 2.0}}
    assert "beyond the bound **1**" in bench.section([broken, *entries], 1, [])
