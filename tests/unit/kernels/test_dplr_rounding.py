"""DPLR, GDN-2 and Mamba-2 on random numbers: rounding errors only, causality, hard gates, packing."""

import pytest
import torch
from agreement import assert_agrees, bits, gradients
from dplr_family import family, packed

CHUNKS = [1, 3, 16, 64, 200]


@pytest.fixture(params=["dplr", "gdn2", "mamba2"])
def mechanism(request):
    return family(request.param)


def forms(mechanism):
    yield mechanism.recurrent
    for chunk_size in CHUNKS:

        def chunked(chunk_size=chunk_size, **inputs):
            return mechanism.chunked(**inputs, chunk_size=chunk_size)

        yield chunked


def outputs(form, inputs):
    o, state = form(**inputs, output_final_state=True)
    return {"o": o, "state": state}


def outputs_and_gradients(form, inputs):
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    o, state = form(**leaves, output_final_state=True)
    found = gradients(leaves, o.double(), state.double())
    return {name: x.double() for name, x in found.items()} | {"o": o.detach(), "state": state.detach()}


@pytest.mark.parametrize("keys", [8, 65])
def test_forms_err_by_rounding_only(mechanism, keys):
    for form in forms(mechanism):
        assert_agrees(outputs, form, mechanism.reference, mechanism.random(70, keys=keys))


@pytest.mark.parametrize("gate", [None, 0.0, -1.5, -5.0, -20.0, -1000.0, -torch.inf])
@pytest.mark.parametrize("chunk_size", [16, 64])
def test_gradients_are_finite_and_right(mechanism, gate, chunk_size):
    inputs = mechanism.random(70, gate=gate)

    def chunked(**inputs):
        return mechanism.chunked(**inputs, chunk_size=chunk_size)

    assert_agrees(outputs_and_gradients, chunked, mechanism.reference, inputs)


@pytest.mark.parametrize(("chunk_size", "offsets"), [(3, None), (2, [0, 0, 1, 5])])
def test_gradcheck(mechanism, chunk_size, offsets):
    inputs = {name: x[:1] for name, x in mechanism.random(5, keys=3).items()}
    inputs["g"] = inputs["g"] - 0.1
    for name in {"b", "w"} & inputs.keys() if mechanism.name == "gdn2" else ():
        inputs[name] = 0.1 + 0.8 * inputs[name]
    options = {"chunk_size": chunk_size, "output_final_state": True}
    if offsets is not None:
        inputs["initial_state"] = torch.cat([inputs["initial_state"]] * 3)
        options["cu_seqlens"] = torch.tensor(offsets)
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}

    def function(*tensors):
        return mechanism.chunked(**dict(zip(leaves, tensors, strict=True)), **options)

    assert torch.autograd.gradcheck(function, tuple(leaves.values()))


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_packed_chunks_err_by_rounding_only(mechanism, chunk_size):
    cu_seqlens = torch.tensor([0, 0, 5, 22, 22, 23, 40])
    inputs = packed(mechanism.random(40), cu_seqlens.tolist())
    inputs.pop("cu_seqlens")

    def chunked(**inputs):
        return mechanism.chunked(**inputs, cu_seqlens=cu_seqlens, chunk_size=chunk_size)

    def reference(**inputs):
        return mechanism.reference(**inputs, cu_seqlens=cu_seqlens)

    assert_agrees(outputs_and_gradients, chunked, reference, inputs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("boundary", [0, 1, 16, 17, 63, 69])
def test_outputs_do_not_depend_on_later_tokens(mechanism, boundary, dtype):
    inputs = {name: x.to(dtype) for name, x in mechanism.random(70, keys=65).items()}
    changed = {name: x.clone() for name, x in inputs.items()}
    later = slice(boundary, None)
    changed["q"][:, later] *= -1e3
    changed["v"][:, later] = 1e20
    changed["g"][:, later] = -torch.inf
    changed["g"][:, -1] = -3.0
    for name in {"k", "a", "b", "w"} & inputs.keys():
        changed[name][:, later] = changed[name][:, later].flip(-1)
    for form in forms(mechanism):
        before, after = form(**inputs)[0], form(**changed)[0]
        assert torch.equal(bits(before[:, :boundary]), bits(after[:, :boundary]))
        assert not torch.equal(before[:, boundary:], after[:, boundary:])


def test_gate_of_minus_infinity_forgets_everything_before(mechanism):
    """What DPLR erases with ``a`` is read before the decay, so that it forgets only where a is 0."""
    inputs = mechanism.random(70)
    inputs["g"][:, 37] = -torch.inf
    if mechanism.name == "dplr":
        inputs["a"][:, 37] = 0
    other = {name: x.clone() for name, x in inputs.items()}
    other["initial_state"] += 1
    for name in ("k", "v"):
        other[name][:, :37] = other[name][:, :37].flip(1)
    for form in forms(mechanism):
        leaves = [{name: x.clone().requires_grad_() for name, x in part.items()} for part in (inputs, other)]
        (o, state), (o_other, state_other) = (form(**part, output_final_state=True) for part in leaves)
        assert torch.equal(o[:, 37:], o_other[:, 37:])
        assert torch.equal(state, state_other)
        (o[:, 37:].sum() + state.square().sum()).backward()
        assert leaves[0]["g"].grad.isfinite().all()
        assert leaves[0]["g"].grad[:, :38].count_nonzero() == 0
        assert leaves[0]["initial_state"].grad.count_nonzero() == 0


def test_nan_propagates_to_its_run_and_no_other(mechanism):
    inputs = mechanism.random(20)
    inputs["v"][1, 7] = torch.nan
    for form in forms(mechanism):
        o, state = form(**inputs, output_final_state=True)
        assert o[1].isnan().any()
        assert o[0].isfinite().all()
        assert state[0].isfinite().all()
