"""Recurrent kernels that find the gradients of gates as running sums over the whole sequence."""

import dataclasses

import pytest
import torch

from kernels.mamba2.recurrent import recurrent_mamba2
from verify.audit.bench import Bench
from verify.audit.case import Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.gradient.judge import judge_gradients
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import named
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.gradient import rigorous as gradient_rigorous
from verify.model.errors import RequestError

FUSED = "fused_recurrent_simple_gla"


def gradients(case, functional):
    """Autograd of our kernel in float32, but of the gates the sums of q dq - k dk over all later tokens."""
    arrays = {name: torch.from_numpy(x).float().requires_grad_() for name, x in case.arrays().items()}
    result = recurrent_mamba2(**arrays, scale=case.scale, output_final_state=True)
    weights = [torch.from_numpy(x).float() for x in (functional.output, functional.state)]
    found = dict(zip(arrays, torch.autograd.grad(result, list(arrays.values()), weights), strict=True))
    with torch.no_grad():
        terms = arrays["q"] * found["q"] - arrays["k"] * found["k"]
        at_end = (result[1] * weights[1]).sum((-2, -1))
        found["g"] = terms.sum(-1).flip(1).cumsum(1).flip(1) + at_end[:, None]
    return {name: x.double().numpy() for name, x in found.items()}


@pytest.mark.parametrize("name", ["gate-reset", "gate-strong", "random"])
def test_the_gradient_of_a_gate_as_a_sum_is_judged_as_declared(name):
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    shape = Shape(B=1, T=24, H=2, HV=2, K=8, V=8)
    case = draw_case(kind, "simple_gla", shape, dtype="float32", seed=3, with_state=True)
    failing = {}
    for sums in ("running", "whole"):
        convention = dataclasses.replace(Convention.load("fla", "simple_gla", FUSED), gate_sums=sums)
        yardstick = Bench(convention, 1).gradient_yardstick(case)
        found = gradients(case, yardstick.functional)
        judged = judge_gradients(case, Outcome(None, None, "", "", None, 0.0, found), yardstick)
        failing[sums] = judged.failing
    # Behind a strong gate the true gradient is next to nothing, and the rounding of the sum stays.
    assert failing == {"running": () if name == "random" else ("g",), "whole": ()}


def test_what_is_declared_reaches_the_model_and_the_worst_case_makes_no_claim_on_it():
    convention = Convention.load("fla", "simple_gla", FUSED)
    algorithm = Algorithm.of(convention, "float32")
    assert algorithm.gate_sums == "whole"
    plain = Algorithm.of(dataclasses.replace(convention, gate_sums="running"), "float32")
    assert plain.gate_sums == "segment"
    mechanism = named("simple_gla")
    assert gradient_rigorous.derivation(mechanism, plain) is not None
    assert gradient_rigorous.derivation(mechanism, algorithm) is None


def test_a_chunked_function_has_no_sum_over_the_whole_sequence():
    convention = dataclasses.replace(Convention.load("fla", "kda", "chunk_kda"), gate_sums="whole")
    with pytest.raises(RequestError, match="gate_sums 'whole' is of recurrent functions"):
        convention.check()
