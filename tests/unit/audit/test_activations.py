"""Gradients through gates, strengths and norms that a function makes inside, and of its constants."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flint import arb, arb_series, ctx

from verify.audit.bench import Bench
from verify.audit.convention.convention import Convention
from verify.audit.gradient.activations import passages, through
from verify.audit.gradient.functional import cotangent
from verify.audit.gradient.judge import GradientJudgement, judge_gradients
from verify.audit.gradient.reasons import explain_gradients
from verify.audit.gradient.reference import Gradients, float64_gradients
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Laboratory
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target

OTHERS = Path(__file__).with_name("differentiable.py")
NAMES = {f: f for f in ("q", "k", "v", "g", "beta", "scale", "initial_state", "A_log", "dt_bias")}
BARE = {f: f for f in NAMES if f not in ("A_log", "dt_bias")}


def fused(gate: str = "value", strength: str = "value", norm: str = "none", **fields: object) -> Convention:
    made = {"gate_form": gate, "beta_form": strength, "qk_norm": norm} | fields
    bound = -5.0 if gate == "sigmoid" else 0.0
    own = {"mechanism": "kda", "gradients": "output-and-state", "arguments": NAMES, "lower_bound": bound}
    extra = {
        "function": "fused",
        "gate": gate,
        "strength": strength,
        "norm": norm,
        "tiled": made.get("head_order") == "tiled",
    }
    return Convention("fused", extra=extra, **(own | made))  # type: ignore[arg-type]


FORMS = {
    "softplus": fused("softplus"),
    "softplus without constants": fused("softplus", arguments=BARE),
    "sigmoid": fused("sigmoid", dt_bias_shape="heads"),
    "strengths": fused(strength="sigmoid"),
    "strengths up to 2": fused(strength="2*sigmoid"),
    "norm": fused(norm="unit"),
    "rounded norm": fused(norm="unit-rounded"),
    "everything": fused("softplus", "sigmoid", "unit-rounded", head_order="tiled"),
}
STEPS = Convention(
    "steps",
    "mamba2",
    arguments={"q": "C", "k": "B", "v": "x", "g": "dt", "A": "A", "initial_state": "initial_states"},
    gate_form="step",
    scale="fixed",
    form="chunked",
    chunk_size=64,
    gate_sums="segment",
    gradients="output-and-state",
    extra={"function": "steps"},
)
SUNK = dataclasses.replace(
    Convention.load("ours", "softmax_sink", "tiled_softmax"), returns="output", extra={"function": "sunk"}
)


@pytest.fixture(scope="module")
def target() -> Iterator[Subject]:
    with Subject(Target.parse(f"{OTHERS}:call"), STEPS) as started:
        yield started


def judged(subject: Subject, convention: Convention, dtype: str, tokens: int = 9) -> GradientJudgement:
    subject.convention = convention
    case = probe(convention, dtype, tokens, seed=4, initial_state=True, grouped=True, size=4)
    return Laboratory(subject, Bench(convention, 1), dtype).judge_gradients(case)


def series(convention: Convention, moved: str, x: float, a_log: float, bias: float) -> "arb":
    """The slope of a gate or strength, along its input or a constant, by the series of its own formula."""
    t = arb_series([0, 1], prec=2)
    here = {
        name: t + value if name == moved else arb_series([value], prec=2)
        for name, value in {"x": x, "A_log": a_log, "dt_bias": bias}.items()
    }
    rates, z = here["A_log"].exp(), here["x"] + here["dt_bias"]
    if convention.beta_form != "value":
        return ((2 if convention.beta_form == "2*sigmoid" else 1) / (1 + (-here["x"]).exp()))[1]
    if convention.gate_form == "sigmoid":
        return (convention.lower_bound / (1 + (-rates * z).exp()))[1]
    return (-rates * (1 + z.exp()).log())[1]


def inner(convention: Convention, tokens: int = 6) -> tuple:
    case = probe(convention, "float32", tokens, seed=4, initial_state=True, grouped=True, size=4)
    seen = convention.as_seen(case)
    return case, convention.handed(case), float64_gradients(seen, cotangent(case, True))


@pytest.mark.parametrize("name", ["softplus", "sigmoid", "strengths", "strengths up to 2"])
def test_balls_contain_the_gradients_of_inputs_and_constants(name: str) -> None:
    """Given those of gates and strengths, from series of the formulas of the forms, not of derivatives."""
    convention = FORMS[name]
    case, handed, gradients = inner(convention)
    field = "beta" if convention.beta_form != "value" else "g"
    exact = Gradients(gradients.values, {f: 0.0 * e for f, e in gradients.errors.items()}, {})
    found = through(exact, passages(convention, case), handed)
    x, upstream = handed[field][0], gradients.values[field]
    constants = [c for c in ("A_log", "dt_bias") if c in handed and field == "g"]
    a_log, bias = (handed[c][0] if c in constants else np.zeros(x.shape[2:]) for c in ("A_log", "dt_bias"))
    a_log = np.broadcast_to(a_log if a_log.ndim == x.ndim - 2 else a_log[:, None], x.shape[2:])
    with ctx.workprec(128):
        for moved in ["x", *constants]:
            target = field if moved == "x" else moved
            sums = np.zeros(found.values[target].shape, dtype=object) + arb(0)
            for where in np.ndindex(x.shape):
                slope = series(convention, moved, x[where], a_log[where[2:]], bias[where[2:]])
                place = where if moved == "x" else where[2 : 2 + sums.ndim]
                sums[place] += slope * arb(upstream[where])
            errors = np.broadcast_to(
                found.errors[target].reshape(
                    found.errors[target].shape + (1,) * (sums.ndim - found.errors[target].ndim)
                ),
                sums.shape,
            )
            apart = np.array(
                [
                    float(abs(a - arb(b)).upper())
                    for a, b in zip(sums.flat, found.values[target].flat, strict=True)
                ]
            )
            assert (apart <= errors.ravel()).all(), target
            assert (apart > 0).any()
            assert (errors.ravel() <= 1e-11 * (1 + np.abs(found.values[target]).max())).all()


def test_balls_contain_the_gradients_through_a_norm() -> None:
    convention = FORMS["norm"]
    case, handed, gradients = inner(convention, tokens=3)
    found = through(gradients, passages(convention, case), handed)
    x, upstream = handed["k"][0], gradients.values["k"]
    with ctx.workprec(128):
        for where in np.ndindex(x.shape[:3]):
            for moved in range(x.shape[3]):
                t = arb_series([0, 1], prec=2)
                row = [t * (i == moved) + arb_series([y], prec=2) for i, y in enumerate(x[where].tolist())]
                length = (
                    sum((y * y for y in row), start=arb_series([convention.qk_norm_eps], prec=2))
                ).sqrt()
                slope = sum(
                    (y / length)[1] * arb(u) for y, u in zip(row, upstream[where].tolist(), strict=True)
                )
                apart = abs(slope - arb(found.values["k"][where][moved]))
                assert apart < found.errors["k"][where] < 1e-11


def test_errors_of_the_gradients_of_gates_reach_those_of_their_inputs() -> None:
    """A gate's gradient changed by its bound changes what follows by no more than the bound that follows."""
    for name in ("everything", "sigmoid"):
        case, handed, gradients = inner(FORMS[name])
        ways = passages(FORMS[name], case)
        rows = {f: np.full(e.shape, 2.0**-10) for f, e in gradients.errors.items()}
        moved = {}
        for field, value in gradients.values.items():
            size = np.sqrt(value.shape[-1]) if value.ndim > rows[field].ndim else 1.0
            moved[field] = value + 2.0**-10 / size
        plain = through(gradients, ways, handed)
        wide = through(Gradients(gradients.values, rows, {}), ways, handed)
        other = through(Gradients(moved, rows, {}), ways, handed)
        for field in ways:
            axes = tuple(range(wide.errors[field].ndim, wide.values[field].ndim))
            change = np.sqrt(np.square(other.values[field] - plain.values[field]).sum(axes))
            assert (change <= wide.errors[field]).all(), field
            assert (change > 2.0**-5 * wide.errors[field]).any(), field


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_right_kernel_is_within_the_tolerance(name: str, dtype: str, target: Subject) -> None:
    judgement = judged(target, FORMS[name], dtype)
    assert judgement.verdict == "sampled", judgement.entry()
    constants = (
        {"A_log", "dt_bias"} if FORMS[name].arguments is NAMES and FORMS[name].gate_form != "value" else set()
    )
    assert set(judgement.measures) == {"q", "k", "v", "g", "beta", "initial_state"} | constants
    assert all(m.worst_ratio > 2.0**-10 for m in judgement.measures.values())


@pytest.mark.parametrize(
    ("form", "fault", "said"),
    [
        ("softplus", "rates", "no gradient reaches the input 'A_log'"),
        ("sigmoid", "bias", "no gradient reaches the input 'dt_bias'"),
        ("norm", "keys", "of k"),
    ],
)
def test_what_is_missing_from_a_gradient_is_said(form: str, fault: str, said: str, target: Subject) -> None:
    convention = dataclasses.replace(FORMS[form], extra={**FORMS[form].extra, "fault": fault})
    judgement = judged(target, convention, "float32")
    assert judgement.verdict == "refuted"
    lab = Laboratory(target, Bench(convention, 1), "float32")
    (finding,) = explain_gradients(lab, [judgement])
    assert said in finding.detail


@pytest.mark.parametrize("name", ["everything", "sigmoid"])
def test_a_gradient_off_by_a_little_is_found_for_every_input_and_constant(name: str, target: Subject) -> None:
    right = judged(target, FORMS[name], "float32")
    for field, found in right.outcome.gradients.items():
        changed = {**right.outcome.gradients, field: found * (1 + 2.0**-12)}
        outcome = dataclasses.replace(right.outcome, gradients=changed)
        assert judge_gradients(right.case, outcome, right.yardstick).failing == (field,)


def test_steps_reach_values_and_rates(target: Subject) -> None:
    right = judged(target, STEPS, "float32", 70)
    assert right.verdict == "sampled", right.entry()
    assert set(right.measures) == {"q", "k", "v", "g", "A", "initial_state"}
    assert all(m.worst_ratio > 2.0**-10 for m in right.measures.values())
    broken = dataclasses.replace(STEPS, extra={**STEPS.extra, "fault": "values"})
    wrong = judged(target, broken, "float32", 70)
    assert wrong.failing == ("g",)


def test_added_errors_of_gates_widen_what_they_reach() -> None:
    """A kernel that subtracts running sums errs more in gates' gradients, and so in those of raw gates."""
    convention = dataclasses.replace(FORMS["softplus"], form="chunked", chunk_size=16, corrections="solved")
    case = probe(convention, "float32", 20, seed=4, initial_state=True, gate=-5.0)
    segment, running = (
        Bench(dataclasses.replace(convention, gate_sums=sums), 1).gradient_yardstick(case)
        for sums in ("segment", "running")
    )
    for field in ("g", "A_log", "dt_bias"):
        assert (running.tolerances[field] / segment.tolerances[field]).min() > 4, field
    assert running.tolerances["v"] == pytest.approx(segment.tolerances["v"], rel=0.5)


@pytest.mark.parametrize("tokens", [7, 20])
def test_the_gradient_of_a_sink_is_judged(tokens: int, target: Subject) -> None:
    right = judged(target, SUNK, "float32", tokens)
    assert right.verdict == "sampled", right.entry()
    assert set(right.measures) == {"q", "k", "v", "sink"}
    assert all(m.worst_ratio > 2.0**-10 for m in right.measures.values())
    broken = dataclasses.replace(SUNK, extra={**SUNK.extra, "fault": "half"})
    wrong = judged(target, broken, "float32", tokens)
    (finding,) = explain_gradients(Laboratory(target, Bench(broken, 1), "float32"), [wrong])
    assert wrong.failing == ("sink",)
    assert "the gradient of sink is 0.5 times what it should be" in finding.detail
