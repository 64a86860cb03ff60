"""Gate forms, strengths and norms: what is asked for is what was wanted, and the model of their roundings."""

import dataclasses

import numpy as np
import pytest
import torch

from verify.audit.bench import Bench
from verify.audit.convention import forms
from verify.audit.convention.convention import Convention
from verify.audit.convention.forms import GateForm
from verify.audit.inputs.probes import probe
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.predicted.prologue import prepared
from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.numbers.formats import FLOAT32, format_named

GATES = -np.geomspace(1e-6, 1000.0, 40).reshape(1, 4, 5, 2)
FORMS = {
    "log2": GateForm(space="log2"),
    "linear": GateForm(space="linear"),
    "softplus": GateForm("softplus"),
    "plain softplus": GateForm("softplus", rates=False, biases=False),
    "sigmoid": GateForm("sigmoid", lower_bound=-2000.0),
    "step": GateForm("step"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_gate_comes_back(form: GateForm) -> None:
    """In float64: the condition of the inverse is that of e^x or a logit, below 2 |x| + 1000 here."""
    gates = GATES[..., 0] if form.form == "step" else GATES
    gates = np.maximum(gates, -700.0) if form.space == "linear" else gates
    back = form.asked(form.handed(gates))
    assert np.all(np.abs(back - gates) <= 2.0**-52 * (4000 * np.abs(gates) + 4 * np.exp(-gates.clip(-30))))


@pytest.mark.parametrize("name", ["softplus", "sigmoid"])
def test_no_decay_and_the_bound_are_exact(name: str) -> None:
    form = dataclasses.replace(FORMS[name], lower_bound=-5.0 * (name == "sigmoid"))
    x = form.handed(np.array([0.0, -5.0, -1e4]).reshape(1, 1, 1, 3))
    assert np.isfinite(x).all()
    g = form.asked(x)
    assert g.flat[0] == 0
    if name == "sigmoid":
        assert g.flat[1] == g.flat[2] == -5


def test_the_softplus_of_a_kernel_is_the_one_meant() -> None:
    """Against torch, in the words of flash-linear-attention's documentation.

    Torch leaves out log(1 + e^-x) above 20, at most e^-20 of 20. Beside that each side rounds an exponential,
    a logarithm, a sum and a product, of at most two units of roundoff each.
    """
    form, x = FORMS["softplus"], np.linspace(-30, 60, 40).reshape(1, 4, 5, 2)
    rates = np.exp(form.a_log(5))[:, None]
    theirs = -torch.from_numpy(rates) * torch.nn.functional.softplus(torch.from_numpy(x + form.bias(5, 2)))
    apart = np.abs(form.asked(x) - theirs.numpy())
    assert np.all(apart <= (np.exp(-20) / 20 + 16 * 2.0**-53) * np.abs(theirs.numpy()))


@pytest.mark.parametrize("form", ["sigmoid", "2*sigmoid"])
def test_strengths_come_back_and_whole_ones_are_exact(form: str) -> None:
    """A logit of at most log 32 < 3.5 errs by four units of it, which p (1 - p) carries; then e^x, 1 +, /."""
    top = 2.0 if form == "2*sigmoid" else 1.0
    beta = np.linspace(0, top, 33)
    back = forms.beta_asked(form, forms.beta_handed(form, beta))
    assert np.all(np.abs(back - beta) <= (4 * 3.5 + 6) * 2.0**-53 * beta)
    assert (back[0], back[-1]) == (0, top)
    assert forms.beta_asked(form, forms.beta_handed(form, np.array([top / 2])))[0] == top / 2


def test_a_zero_row_has_no_direction() -> None:
    assert not forms.unit(np.zeros((2, 3)), 0.0).any()
    assert np.array_equal(forms.unit(np.array([[3.0, 4.0]]), 0.0), [[0.6, 0.8]])
    assert np.array_equal(forms.unit(np.array([[3.0, 4.0]]), 75.0), [[0.3, 0.4]])


def fused(**fields: object) -> Convention:
    named = {f: f for f in ("q", "k", "v", "g", "beta", "scale", "initial_state", "A_log", "dt_bias")}
    return Convention("x", "kda", arguments=named, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"gate_form": "softplus"},
        {"gate_form": "sigmoid", "lower_bound": -5.0},
        {"beta_form": "sigmoid"},
        {"beta_form": "2*sigmoid"},
        {"qk_norm": "unit"},
        {"qk_norm": "unit-rounded"},
    ],
    ids=lambda fields: "-".join(map(str, fields.values())),
)
def test_the_model_rounds_about_the_inputs_of_the_reference(fields: dict) -> None:
    """Every run's inputs are those of the reference up to a few roundings, and no two runs' are the same."""
    convention = fused(**fields)
    case = probe(convention, "bfloat16", 6, seed=4, initial_state=True, grouped=True)
    seen, algorithm = convention.as_seen(case), Algorithm.of(convention, "bfloat16")
    runs = 6
    mode = StochasticRounding(FLOAT32, runs, runs // 2, 0)
    arrays = {f: torch.from_numpy(np.tile(x, (runs, *[1] * (x.ndim - 1)))) for f, x in seen.arrays().items()}
    with torch.no_grad(), mode:
        made = prepared(arrays, algorithm, mode)
    changed = {f for f in made if not torch.equal(made[f], arrays[f])}
    expected = {"gate_form": {"g"}, "beta_form": {"beta"}, "qk_norm": {"q", "k"}}[next(iter(fields))]
    assert changed == expected
    coarse = format_named("bfloat16") if "unit-rounded" in fields.values() else FLOAT32
    for field in changed:
        apart = (made[field] - arrays[field]).abs()
        # A gate's own operations err by 1 u of 1 in a softplus without log1p, times its rate, up to e^4.25.
        size = arrays[field].abs() + (71 if field == "g" else 0)
        assert (apart <= 64 * float(coarse.unit_roundoff) * size).all()
        assert apart.unflatten(0, (runs, -1)).flatten(1).unique(dim=0).shape[0] == runs


def test_prepared_inputs_have_no_proved_worst_case_and_coarser_storage_no_exact_class() -> None:
    plain, prepares = fused(), fused(beta_form="sigmoid")
    case = probe(plain, "float32", 5, seed=1)
    assert Bench(plain, 1).yardstick(case).worst_case is not None
    assert Bench(prepares, 1).yardstick(case).worst_case is None
    stored = fused(form="chunked", chunk_size=16, storage_dtype="input")
    assert Algorithm.of(stored, "bfloat16").model_dtype == "bfloat16"
    assert Algorithm.of(stored, "float32").model_dtype == "float32"
    assert not Algorithm.of(stored, "bfloat16").exact_on_integers
