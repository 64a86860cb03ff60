"""Runs the model of a kernel's algorithm, forward and backward, with every operation rounded at random."""

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.numbers.formats import Format

if TYPE_CHECKING:
    from torch import Tensor

    from verify.audit.tolerance.prediction import Algorithm

_BLOCK = {"chunked": "chunk_size", "tiled": "tile_size"}


def run(
    case: Case,
    algorithm: "Algorithm",
    model: Format | None,
    runs: int,
    seed: int,
    functional: Cotangent | None = None,
) -> dict[str, Array]:
    """What ``runs`` copies of the case, along the batch, give in the precision of ``model`` (None: float64).

    The output and, where there is one, the state; or, with a functional, its gradient by input field.
    """
    import torch

    from verify.audit.tolerance.rounding import StochasticRounding

    arrays = {name: _tiled(x, runs) for name, x in case.arrays().items()}
    options: dict[str, Any] = {"scale": case.scale}
    if algorithm.chunk_size is not None:
        options[_BLOCK[algorithm.form]] = algorithm.chunk_size
    if case.kind.stateful:
        options["output_final_state"] = True
    function = mechanism.kernel(case.mechanism, algorithm.form)
    mode = StochasticRounding(model, runs, runs // 2, seed) if model else contextlib.nullcontext()
    with torch.no_grad(), mode:
        if model and algorithm.gate_sums == "running" and case.kind.gate:
            # Backward, subtracting adds other errors: see `gradient.running`.
            arrays["g"] = _as_subtracted(arrays["g"], algorithm.chunk_size)
    if functional is not None:
        arrays = {name: x.requires_grad_() for name, x in arrays.items()}
    with torch.set_grad_enabled(functional is not None), mode:
        output, state = function(**arrays, **options)
        results = {"output": output, "state": state} if case.kind.stateful else {"output": output}
        if functional is not None:
            results = _gradients(arrays, results, functional, runs)
    return {name: x.numpy() for name, x in results.items()}


def _gradients(
    arrays: Mapping[str, "Tensor"], results: Mapping[str, "Tensor"], functional: Cotangent, runs: int
) -> dict[str, "Tensor"]:
    """An input that a result does not depend on has the gradient 0."""
    import torch

    weights = {"output": functional.output, "state": functional.state}
    connected = {name: x for name, x in results.items() if x.requires_grad}
    found = torch.autograd.grad(
        list(connected.values()),
        list(arrays.values()),
        [_tiled(weights[name], runs) for name in connected],
        allow_unused=True,
    )
    pairs = zip(arrays.items(), found, strict=True)
    return {name: torch.zeros_like(x) if gradient is None else gradient for (name, x), gradient in pairs}


def _tiled(x: Array, runs: int) -> "Tensor":
    import torch

    return torch.from_numpy(np.tile(x, (runs, *[1] * (x.ndim - 1))))


def _as_subtracted(g: "Tensor", chunk_size: int | None) -> "Tensor":
    """The gates that differences of rounded running sums amount to, chunk by chunk along T.

    Our model sums gates over segments. Fed with these, every sum it forms is the difference of two running
    sums that were rounded, which is what such a kernel computes. No gate becomes positive: rounding is
    monotone and the earlier sum lies on the grid.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    chunks = []
    for chunk in torch.split(g, chunk_size or g.shape[1], dim=1):
        sums = chunk.cumsum(1)
        with _disable_current_modes():
            chunks.append(sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1])))
    return torch.cat(chunks, dim=1) if chunks else g
