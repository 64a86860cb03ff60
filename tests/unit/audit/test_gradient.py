"""Reference gradients: the adjoint is the derivative of the definition, balls confirm the bounds."""

import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from differentiable import factored_delta
from dual import Dual, Duals

from verify.audit import mechanism as mechanisms
from verify.audit.bench import Bench
from verify.audit.case import Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.gradient import adjoint, directed_adjoint
from verify.audit.gradient.confirm import ball_gradients, confirm
from verify.audit.gradient.functional import cotangent, gathered
from verify.audit.gradient.judge import judge_gradients
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.cells import cells, classes, gradient_cells
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Laboratory
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.definition import visibility
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.numbers import system

KINDS = {kind.name: kind for kind in REAL_CLASSES}
SHAPE = Shape(B=1, T=8, H=1, HV=2, K=4, V=3)
T, K, V = 3, 2, 2
OTHERS = Path(__file__).with_name("differentiable.py")


def drawn(name, mechanism="kda", shape=SHAPE):
    return draw_case(KINDS[name], mechanism, shape, dtype="float32", seed=5, with_state=True)


def rationals(*shape):
    rng = np.random.default_rng(len(shape))
    return np.vectorize(Fraction, otypes=[object])(rng.integers(-5, 6, shape), rng.integers(1, 7, shape))


@pytest.mark.parametrize("mechanism", ["linear", "delta", "gdn", "kda", "mamba2", "dplr", "gdn2"])
def test_the_adjoint_is_the_derivative_of_the_definition(mechanism):
    """Every entry of every input, in exact rationals; decays are any positive rationals."""
    exact, kind = system("exact"), MECHANISMS[mechanism]
    definition = mechanisms.definition(mechanism)
    inputs = {"q": rationals(T, K), "k": rationals(K, T).T, "v": rationals(T, V), "state": rationals(K, V)}
    inputs |= {"beta": rationals(1, T)[0], "a": rationals(T, K)[::-1], "b": rationals(K, T).T[::-1]}
    inputs["w"] = rationals(V, T).T[::-1]
    alpha = abs(rationals(T, K)) + 1
    if kind.gate == "head":
        alpha = np.repeat(alpha[:, :1], K, axis=1)
    weights, final = rationals(V, T).T, rationals(V, K).T

    def columns(numbers, rows, make=lambda x: x):
        return [numbers.matrix([[make(x)] for x in row]) for row in rows]

    options = {
        "scale": exact.number(Fraction(2, 3)),
        "state": exact.matrix(inputs["state"].tolist()),
        "d_output": columns(exact, weights),
        "d_state": exact.matrix(final.tolist()),
    }
    decays = columns(exact, alpha) if kind.gate else None
    if kind.directed:
        tokens = {name: columns(exact, inputs[name]) for name in kind.tokens if name != "g"}
        found = directed_adjoint.gradients(exact, tokens, decays, **options)
    else:
        found = adjoint.recurrence(
            exact,
            *(columns(exact, inputs[name]) for name in ("q", "k", "v")),
            alpha=decays,
            beta=[exact.number(x) for x in inputs["beta"]] if kind.erases else None,
            **options,
        )

    def slope(field, where):
        """The derivative of the functional along one entry, by dual numbers through the definition."""
        numbers = Duals(exact)

        def lifted(name, array):
            moved = np.zeros(array.shape, dtype=object)
            if name == field:
                # A gate moves its decay by e^g; the gate of a head moves all channels.
                moved[where] = array[where] if name == "g" else 1
            pairs = [exact.number(x) for x in array.ravel()], [exact.number(x) for x in moved.ravel()]
            duals = [Dual(*pair) for pair in zip(*pairs, strict=True)]
            return np.array(duals, dtype=object).reshape(array.shape)

        tokens = []
        for name in kind.tokens:
            entries = lifted(name, alpha if name == "g" else inputs[name])
            if name == "g" and kind.gate == "head":
                entries = entries[:, 0]
            tokens.append(list(entries) if entries.ndim == 1 else columns(numbers, entries))
        outputs, state = definition.recurrence(
            numbers,
            *tokens,
            scale=numbers.number(Fraction(2, 3)),
            state=numbers.matrix(lifted("initial_state", inputs["state"]).tolist()),
        )
        rows = [[x for (x,) in exact.to_lists(output.slope)] for output in outputs]
        rows += exact.to_lists(state.slope)
        coefficients = [*weights.tolist(), *final.tolist()]
        pairs = [pair for two in zip(rows, coefficients, strict=True) for pair in zip(*two, strict=True)]
        return sum((x * exact.number(w) for x, w in pairs), start=exact.number(0))

    checked = 0
    for field in kind.fields:
        shape = {"beta": (T,), "initial_state": (K, V), "v": (T, V), "w": (T, V)}.get(field, (T, K))
        if field == "g" and kind.gate == "head":
            shape = (T, 1)
        for where in np.ndindex(shape):
            expected = slope(field, where)
            value = found[field] if field == "initial_state" else found[field][where[0]]
            if field == "beta":
                got = value
            elif field == "g" and kind.gate == "head":
                got = sum((row[0] for row in exact.to_lists(value)), start=exact.number(0))
            else:
                rest = where if field == "initial_state" else (where[1], 0)
                got = exact.entry(value, *rest)
            assert got == expected, (field, where)
            checked += got != 0
    assert checked > 10


@pytest.mark.parametrize("mechanism", ["softmax", "softmax_window", "softmax_sink", "linear_normalised"])
def test_the_adjoint_of_attention_is_its_derivative(mechanism, monkeypatch):
    """Directional derivatives by dual balls overlap the adjoint's, and have no room for another."""
    from flint import arb, ctx

    balls = system("ball", precision=128)
    definition = mechanisms.definition(mechanism)
    kind = MECHANISMS[mechanism]
    if kind.window is not None:
        kind = dataclasses.replace(kind, options=(("window", 2),))
        monkeypatch.setitem(MECHANISMS, mechanism, kind)
    case = drawn("random", mechanism, Shape(B=1, T=4, H=1, HV=1, K=3, V=2))
    functional = cotangent(case, with_state=False)
    gradients = ball_gradients(case, functional)
    numbers = Duals(balls)

    def lifted(x, y):
        return numbers.matrix(
            [[Dual(balls.number(float(a)), balls.number(float(b)))] for a, b in zip(x, y, strict=True)]
        )

    with ctx.workprec(128):
        for field in ("q", "k", "v"):
            for where in np.ndindex(getattr(case, field).shape):
                tokens = []
                for name in ("q", "k", "v"):
                    array = getattr(case, name)
                    moved = np.zeros(array.shape)
                    if name == field:
                        moved[where] = 1
                    tokens.append(
                        [lifted(*rows) for rows in zip(array[0, :, 0], moved[0, :, 0], strict=True)]
                    )
                options = visibility(numbers, kind)
                outputs = definition.causal(numbers, *tokens, scale=numbers.number(case.scale), **options)
                slopes = [x for output in outputs for (x,) in balls.to_lists(output.slope)]
                total = sum(
                    x * arb(w) for x, w in zip(slopes, functional.output.ravel().tolist(), strict=True)
                )
                assert abs(total - gradients[field][where]) < 1e-30
        if kind.sink is not None:
            tokens = [
                [
                    numbers.matrix([[Dual(balls.number(float(x)), balls.number(0))] for x in row])
                    for row in rows
                ]
                for rows in (getattr(case, name)[0, :, 0] for name in ("q", "k", "v"))
            ]
            sink = Dual(balls.number(kind.sink), balls.number(1))
            outputs = definition.causal(numbers, *tokens, scale=numbers.number(case.scale), sink=sink)
            slopes = [x for output in outputs for (x,) in balls.to_lists(output.slope)]
            pairs = zip(slopes, functional.output.ravel().tolist(), strict=True)
            assert abs(sum(x * arb(w) for x, w in pairs) - gradients["sink"][0]) < 1e-30


PAIRS = [(m, name) for m, kind in MECHANISMS.items() for name in classes(kind) if name in KINDS]


@pytest.mark.parametrize(("mechanism", "name"), PAIRS)
def test_balls_confirm_the_bounds(mechanism, name):
    longer = SHAPE if MECHANISMS[mechanism].window is None else dataclasses.replace(SHAPE, T=18)
    case = drawn(name, mechanism, longer)
    functional = cotangent(case, MECHANISMS[mechanism].stateful)
    outcome = confirm(case, functional, float64_gradients(case, functional))
    assert outcome.holds
    # A bound ten thousand times the error would confirm nothing worth knowing.
    # The rounding errors of large logits are largely the same for all keys, which no bound knows. Nothing is
    # rounded where a sink leaves such logits no weight, or a scale of 0 leaves linear attention no queries.
    least = 1e-8 if name in ("logits-lowest", "scale-huge") else 1e-4
    exact = (mechanism, name) in (("softmax_sink", "logits-lowest"), ("linear", "scale-zero"))
    assert (0 if exact else least) <= outcome.worst <= 1


@pytest.mark.parametrize(
    ("mechanism", "field"),
    [
        ("kda", "g"),
        ("gdn", "beta"),
        ("softmax", "k"),
        ("linear", "initial_state"),
        ("dplr", "a"),
        ("gdn2", "w"),
    ],
)
def test_balls_contradict_a_wrong_gradient_and_a_tight_bound(mechanism, field):
    case = drawn("random", mechanism)
    functional = cotangent(case, MECHANISMS[mechanism].stateful)
    gradients = float64_gradients(case, functional)
    tight = {name: 1e-5 * error for name, error in gradients.errors.items()}
    assert confirm(case, functional, dataclasses.replace(gradients, errors=tight)).contradicted > 0
    gradients.values[field].ravel()[-1] += 4 * gradients.errors[field].ravel()[-1]
    assert confirm(case, functional, gradients).contradicted == 1


def test_shared_heads_add_their_gradients():
    case = drawn("random", "kda")
    spread = np.arange(8.0 * 2 * 4).reshape(1, 8, 2, 4)
    assert (gathered(case, "k", spread)[:, :, 0] == spread.sum(axis=2)).all()
    assert gathered(case, "v", spread) is spread


def test_the_fast_budget_differentiates_one_case_of_each_class():
    convention = Convention.load("ours", "kda", "chunked_kda")
    every = list(cells("kda", "float32", convention))
    chosen = gradient_cells(every, "fast")
    assert [case.name for case in chosen] == [n for n in classes(MECHANISMS["kda"]) if "integer" not in n]
    assert all(case.shape.T == 65 and case.initial_state is not None for case in chosen)
    again = gradient_cells(every, "standard")
    assert {(c.name, c.shape.T) for c in again} == {
        (c.name, c.shape.T) for c in every if "integer" not in c.name
    }
    assert len(again) == len({(c.name, c.shape.T) for c in again})


def gradients_of(function, case, functional):
    types = {name: getattr(torch, case.dtype_of(name)) for name in case.arrays()}
    inputs = {n: torch.from_numpy(x).to(types[n]).requires_grad_() for n, x in case.arrays().items()}
    options = {"output_final_state": True} if case.kind.stateful else {}
    output, state = function(**inputs, scale=case.scale, **options)
    loss = (output * torch.from_numpy(functional.output).to(output.dtype)).sum()
    if case.kind.stateful:
        loss = loss + (state * torch.from_numpy(functional.state).to(state.dtype)).sum()
    found = torch.autograd.grad(loss, list(inputs.values()))
    return {n: x.double().numpy() for n, x in zip(inputs, found, strict=True)}


# The kernel's own gradient of a sink adds over the batch, which no model of its rounding can run along.
LEFT_OUT = ("simple_gla", "softmax_sink")
FORMS = [(m, form) for m, kind in MECHANISMS.items() for form in kind.forms if m not in LEFT_OUT]


@pytest.mark.parametrize(("mechanism", "form"), FORMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_our_gradients_are_within_the_tolerance_and_wrong_ones_are_not(mechanism, form, dtype):
    convention = Convention.load("ours", mechanism, f"{form}_{MECHANISMS[mechanism].room or mechanism}")
    case = probe(convention, dtype, 20, seed=4, grouped=True, initial_state=True)
    yardstick = Bench(convention, 1).gradient_yardstick(case)
    found = gradients_of(mechanisms.kernel(mechanism, form), case, yardstick.functional)
    judged = judge_gradients(case, Outcome(None, None, "", "", None, 0.0, found), yardstick)
    assert judged.verdict == "sampled", judged.entry()
    assert all(m.worst_ratio > 1e-3 for m in judged.measures.values())
    for field in found:
        changed = {**found, field: found[field] * (1 + 2.0**-4)}
        again = judge_gradients(case, Outcome(None, None, "", "", None, 0.0, changed), yardstick)
        assert again.failing == (field,)


def test_running_sums_widen_the_tolerance_of_gates_only():
    convention = Convention.load("ours", "gdn", "chunked_gdn")
    case = probe(convention, "float32", 20, seed=4, initial_state=True, gate=-5.0)
    segment, running = (
        Bench(dataclasses.replace(convention, gate_sums=sums), 1).gradient_yardstick(case)
        for sums in ("segment", "running")
    )
    # Strong gates have small gradients, so that what cancels is large beside them.
    assert (running.tolerances["g"] / segment.tolerances["g"]).min() > 10
    assert running.tolerances["v"] == pytest.approx(segment.tolerances["v"], rel=0.5)


def test_stored_factors_widen_the_tolerance_of_beta_where_they_cancel():
    """Values that the state predicts but for a hundredth: what is left has the errors of what cancelled."""
    loaded = dataclasses.replace(Convention.load("ours", "delta", "chunked_delta"), chunk_size=16)
    shape = Shape(B=1, T=32, H=1, HV=1, K=8, V=8)
    case = drawn("predicted-value", "delta", shape)
    worst = {}
    for corrections in ("solved", "factored"):
        bench = Bench(dataclasses.replace(loaded, corrections=corrections), 1)
        yardstick = bench.gradient_yardstick(case)
        arrays = {name: torch.from_numpy(x).float().requires_grad_() for name, x in case.arrays().items()}
        output, state = factored_delta(**arrays, scale=case.scale, chunk_size=16)
        weights = (torch.from_numpy(x).float() for x in vars(yardstick.functional).values())
        found = torch.autograd.grad((output, state), list(arrays.values()), tuple(weights))
        gradients = {name: x.double().numpy() for name, x in zip(arrays, found, strict=True)}
        judged = judge_gradients(case, Outcome(None, None, "", "", None, 0.0, gradients), yardstick)
        assert judged.verdict == "sampled", judged.entry()
        worst[corrections] = {
            f: float(m.figures("float32", tokens=False)["worst_over_deviation"])
            for f, m in judged.measures.items()
        }
    assert worst["solved"]["beta"] > 2 * max(ratio for f, ratio in worst["solved"].items() if f != "beta")
    assert 0.1 < worst["factored"]["beta"] < 1
    assert worst["factored"]["k"] == worst["solved"]["k"]


@pytest.mark.parametrize(
    ("function", "changes"),
    [
        ("head_first", {"token_layout": "BHTD", "state_layout": "VK"}),
        ("base_two", {"gate_space": "log2"}),
        ("linear_gate", {"gate_space": "linear"}),
    ],
)
def test_gradients_come_back_in_our_layout_and_gate_space(function, changes):
    convention = dataclasses.replace(Convention.load("ours", "kda", "recurrent_kda"), **changes)
    case = probe(convention, "float32", 6, seed=3, grouped=True, initial_state=True)
    with Subject(Target.parse(f"{OTHERS}:{function}"), convention) as subject:
        judged = Laboratory(subject, Bench(convention, 1), "float32").judge_gradients(case)
    assert judged.verdict == "sampled", judged.entry()
    assert set(judged.measures) == {"q", "k", "v", "g", "beta", "initial_state"}


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        ("detached", "no-gradient", "the output does not depend on the inputs for autograd"),
        ("deaf", "no-gradient", "no gradient reaches the input 'beta'"),
        ("in_place", "raised", "in-place"),
    ],
)
def test_a_target_that_cannot_be_differentiated_is_a_finding(function, kind, said):
    convention = Convention.load("ours", "kda", "recurrent_kda")
    case = probe(convention, "float32", 6, seed=3, initial_state=True)
    with Subject(Target.parse(f"{OTHERS}:{function}"), convention) as subject:
        lab = Laboratory(subject, Bench(convention, 1), "float32")
        assert subject.run(case).problem is None or function == "in_place"
        judged = lab.judge_gradients(case)
        assert judged.problem is not None
        assert (judged.problem.kind, judged.verdict) == (kind, "refuted")
        assert said in judged.problem.message
        assert len(explain_gradients(lab, [judged])) == 1
