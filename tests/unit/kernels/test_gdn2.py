"""GDN-2 beside Kimi Delta Attention, which is the case of one gate for erasing and writing."""

import pytest
import torch
from agreement import assert_agrees
from dplr_family import family

from kernels.dplr.chunked import chunked_dplr
from kernels.gdn2.chunked import chunked_gdn2
from kernels.gdn2.recurrent import recurrent_gdn2
from kernels.gdn2.reference import reference_gdn2
from kernels.kda.reference import reference_kda

GDN2 = family("gdn2")


def collapsed(inputs):
    """b = w = beta in all channels."""
    beta = inputs["b"][..., 0]
    gates = {name: beta.unsqueeze(-1).expand_as(inputs[name]) for name in ("b", "w")}
    return inputs | gates, {name: x for name, x in inputs.items() if name not in gates} | {"beta": beta}


@pytest.mark.parametrize("kernel", [reference_gdn2, recurrent_gdn2, chunked_gdn2])
def test_one_gate_for_all_channels_is_kda(kernel):
    own, kda = collapsed(GDN2.integers(40))
    for ours, theirs in zip(
        kernel(**own, output_final_state=True), reference_kda(**kda, output_final_state=True), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_erase_and_write_gates_act_on_their_own_axes():
    """Erasing nothing is writing w * v; writing nothing is erasing alone."""
    inputs = GDN2.integers(9)
    off = {name: torch.zeros_like(inputs[name]) for name in ("b", "w")}
    o, state = chunked_gdn2(**(inputs | {"b": off["b"]}), output_final_state=True)
    written = inputs | {"b": off["b"], "w": torch.ones_like(off["w"]), "v": inputs["w"] * inputs["v"]}
    for one, other in zip((o, state), reference_gdn2(**written, output_final_state=True), strict=True):
        assert torch.equal(one, other)
    start = inputs | {"initial_state": torch.zeros_like(inputs["initial_state"]), "w": off["w"]}
    assert chunked_gdn2(**start)[0].count_nonzero() == 0


def test_raw_gates_are_activated_as_in_kda():
    rng = torch.Generator().manual_seed(0)
    own, _ = collapsed(GDN2.random(20))
    raw = torch.randn(own["g"].shape, generator=rng, dtype=torch.float64)
    options = {
        "A_log": torch.randn(2, generator=rng, dtype=torch.float64),
        "dt_bias": torch.randn(2, 8, generator=rng, dtype=torch.float64),
        "qk_l2norm": True,
    }
    for bound in (None, -5.0):
        options["gate_lower_bound"] = bound

        def run(kernel, inputs, options=options):
            return {"o": kernel(**inputs)[0]}

        def gdn2(options=options, **inputs):
            return chunked_gdn2(**inputs, **{**options, "A_log": options["A_log"].to(inputs["q"].dtype)})

        def reference(options=options, **inputs):
            beta = inputs.pop("b")[..., 0]
            inputs.pop("w")
            return reference_kda(**inputs, beta=beta, **options)

        assert_agrees(run, gdn2, reference, own | {"g": raw})


def test_gdn2_is_a_case_of_dplr():
    """With a = -e^g * b * k read before the decay, b = k, and two writes in place of one."""
    inputs = GDN2.integers(40)
    spread = {name: inputs[name].repeat_interleave(2, dim=2) for name in ("q", "k")}
    own = {name: inputs[name] for name in ("g", "initial_state")} | spread
    a = -inputs["g"].exp() * inputs["b"] * own["k"]
    o, state = chunked_dplr(**own, v=inputs["w"] * inputs["v"], a=a, b=own["k"], output_final_state=True)
    for one, other in zip((o, state), reference_gdn2(**inputs, output_final_state=True), strict=True):
        assert torch.equal(one, other)
