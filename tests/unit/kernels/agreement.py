"""Whether a form of a mechanism computes the same as its reference, up to rounding and no more."""

import torch

LINE = (torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps) ** 0.5


def assert_agrees(run, form, reference, inputs):
    """``run(form, inputs)`` gives named tensors; they must be what ``run(reference, inputs)`` gives.

    A rounding error shrinks with the unit roundoff from float32 to float64, by 2^-29; a wrong formula errs
    alike in both. The line between the two hypotheses is their geometric mean, 2^-14.5. An error in float32
    may be 0 by chance, so it counts as at least one rounding of the largest number.
    """
    single = {name: x.float() for name, x in inputs.items()}
    double = {name: x.double() for name, x in single.items()}
    exact, in_single, in_double = run(reference, double), run(form, single), run(form, double)
    assert exact.keys() == in_single.keys() == in_double.keys()
    for name, expected in exact.items():
        finite = expected.isfinite()
        for computed in (in_single[name], in_double[name]):
            assert computed.shape == expected.shape, name
            assert torch.equal(computed.isfinite(), finite), name
            assert torch.equal(computed[~finite].double(), expected[~finite]), name
        if not finite.any():
            continue
        size = expected[finite].abs().max()
        rounding = (in_single[name] - expected)[finite].abs().max()
        rounding = rounding.clamp(min=torch.finfo(torch.float32).eps * max(1.0, size.item()))
        error = (in_double[name] - expected)[finite].abs().max()
        assert error <= LINE * rounding, f"{name}: {error:.1e} in float64, {rounding:.1e} in float32"


def gradients(leaves, *outputs):
    """The gradient per leaf of a fixed linear functional of the finite entries of the outputs."""
    total = torch.zeros((), dtype=torch.float64)
    for output in outputs:
        weights = torch.linspace(-1, 2, output.numel(), dtype=output.dtype).reshape(output.shape)
        total = total + (weights * output.where(output.isfinite(), 0.0)).sum()
    if total.requires_grad:
        total.backward()
    return {
        f"gradient of {name}": torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        for name, leaf in leaves.items()
    }


def bits(x):
    """The bit pattern, so that -0.0 differs from 0.0 and NaN equals itself."""
    return x.contiguous().view(torch.int64 if x.dtype == torch.float64 else torch.int32)
