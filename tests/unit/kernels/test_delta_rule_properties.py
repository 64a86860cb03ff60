"""Causality, resumption, gradients at hard gates, and independence of the runs along the batch."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
CHUNKS = [1, 16, 17, 64, 200]


def bits(x):
    return x.contiguous().view(torch.int64 if x.dtype == torch.float64 else torch.int32)


def forms(mechanism):
    """Every form that computes in the working precision, as a function of the inputs."""
    yield mechanism.recurrent
    for chunk_size in CHUNKS:

        def chunked(chunk_size=chunk_size, **inputs):
            return mechanism.chunked(**inputs, chunk_size=chunk_size)

        yield chunked


@DTYPES
@pytest.mark.parametrize("boundary", [0, 1, 15, 16, 17, 40, 63, 64, 69])
@pytest.mark.parametrize("keys", [8, 65])
def test_outputs_do_not_depend_on_later_tokens(mechanism, boundary, keys, dtype):
    inputs = {name: x.to(dtype) for name, x in mechanism.random(70, keys=keys).items()}
    changed = {name: x.clone() for name, x in inputs.items()}
    later = slice(boundary, None)
    changed["q"][:, later] *= -1e3
    changed["k"][:, later] = changed["k"][:, later].flip(-1)
    changed["v"][:, later] = 1e20
    if mechanism.gated:
        changed["g"][:, later] = -torch.inf
        changed["g"][:, -1] = -3.0
    changed["beta"][:, later] = 2.0
    for form in forms(mechanism):
        before, after = form(**inputs)[0], form(**changed)[0]
        assert torch.equal(bits(before[:, :boundary]), bits(after[:, :boundary]))
        assert not torch.equal(before[:, boundary:], after[:, boundary:])


def split(inputs, at):
    parts = [{name: x[:, rows] for name, x in inputs.items()} for rows in (slice(at), slice(at, None))]
    parts[0]["initial_state"] = inputs["initial_state"]
    return parts


def resume(form, inputs, at):
    first, second = split(inputs, at)
    o_first, state = form(**first, output_final_state=True)
    o_second, state = form(**(second | {"initial_state": state}), output_final_state=True)
    return torch.cat([o_first, o_second], dim=1), state


@pytest.mark.parametrize("at", [0, 1, 16, 30, 64, 70])
def test_resuming_anywhere_is_exact_on_integers(mechanism, at):
    inputs = mechanism.integers(70, reset=True)
    for form in (mechanism.reference, *forms(mechanism)):
        o, state = form(**inputs, output_final_state=True)
        resumed = resume(form, inputs, at)
        assert torch.equal(resumed[0], o)
        assert torch.equal(resumed[1], state)


@DTYPES
def test_resuming_between_chunks_changes_no_bit(mechanism, dtype):
    inputs = {name: x.to(dtype) for name, x in mechanism.random(70).items()}

    def chunked(**inputs):
        return mechanism.chunked(**inputs, chunk_size=16)

    for form in (mechanism.recurrent, chunked):
        o, state = form(**inputs, output_final_state=True)
        resumed = resume(form, inputs, 32)
        assert torch.equal(bits(resumed[0]), bits(o))
        assert torch.equal(bits(resumed[1]), bits(state))


def test_reference_accepts_its_own_state_for_half_inputs(mechanism):
    inputs = mechanism.integers(10)
    half = {name: x.bfloat16() for name, x in inputs.items() if name != "initial_state"}
    half["initial_state"] = inputs["initial_state"]
    o, _ = resume(mechanism.reference, half, 4)
    assert torch.equal(o, mechanism.reference(**inputs)[0])


@DTYPES
def test_gate_of_minus_infinity_forgets_everything_before(gated, dtype):
    inputs = {name: x.to(dtype) for name, x in gated.random(70).items()}
    inputs["g"][:, 37] = -torch.inf
    other = {name: x.clone() for name, x in inputs.items()}
    other["initial_state"] += 1
    for name in ("k", "v", "beta"):
        other[name][:, :37] = other[name][:, :37].flip(1)
    for form in forms(gated):
        o, state = form(**inputs, output_final_state=True)
        o_other, state_other = form(**other, output_final_state=True)
        assert torch.equal(o[:, 37:], o_other[:, 37:])
        assert torch.equal(state, state_other)


def gradients(kernel, inputs, **options):
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    o, state = kernel(**leaves, output_final_state=True, **options)
    weights = torch.linspace(-1, 1, o.numel(), dtype=o.dtype).reshape(o.shape)
    ((weights * o).sum() + state.sum()).backward()
    return {name: leaf.grad.double() for name, leaf in leaves.items()}


@pytest.mark.parametrize("gate", [None, 0.0, -1.5, -5.0, -20.0, -1000.0, -torch.inf])
@pytest.mark.parametrize("chunk_size", [16, 64])
def test_gradients_are_finite_and_right(gated, gate, chunk_size):
    """A rounding error shrinks with the unit roundoff from float32 to float64, by 2^-29; a wrong formula
    errs alike in both. The line between the two hypotheses is their geometric mean, 2^-14.5."""
    single = {name: x.float() for name, x in gated.random(70, gate=gate).items()}
    double = {name: x.double() for name, x in single.items()}
    exact = gradients(gated.reference, double)
    in_single = gradients(gated.chunked, single, chunk_size=chunk_size)
    in_double = gradients(gated.chunked, double, chunk_size=chunk_size)
    line = (torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps) ** 0.5
    for name, expected in exact.items():
        assert expected.isfinite().all()
        assert in_single[name].isfinite().all()
        error = (in_double[name] - expected).abs().max()
        assert error <= line * (in_single[name] - expected).abs().max(), name


class DisturbRun(TorchDispatchMode):
    """Changes what every operation returns for one run, found from the leading dimension."""

    def __init__(self, runs, chosen):
        super().__init__()
        self.runs, self.chosen = runs, chosen

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.is_view or not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return result
        if func is torch.ops.aten.max.default:  # only compared with the bound of valid input
            return result
        assert result.shape[0] % self.runs == 0, f"{func} returns {tuple(result.shape)}"
        if not func._schema.is_mutable:
            result = result.clone()
        result.unflatten(0, (self.runs, -1))[self.chosen] *= 1 + 2**-20
        return result


def test_runs_along_the_batch_stay_apart(mechanism):
    inputs = {name: torch.cat([x] * 4)[:7] for name, x in mechanism.random(20).items()}
    for form in (mechanism.reference, *forms(mechanism)):
        plain = form(**inputs, output_final_state=True)
        with DisturbRun(7, 3):
            disturbed = form(**inputs, output_final_state=True)
        for before, after in zip(plain, disturbed, strict=True):
            same = (bits(before) == bits(after)).flatten(1).all(1)
            assert same.tolist() == [run != 3 for run in range(7)]
