"""Runs the model of a kernel's algorithm, forward and backward, with every operation rounded at random."""

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.numbers.formats import Format

if TYPE_CHECKING:
    from torch import Tensor

    from verify.audit.tolerance.prediction import Algorithm

_LOG2_E = math.log2(math.e)
_BLOCK = {"chunked": "chunk_size", "tiled": "tile_size"}


def run(
    case: Case,
    algorithm: "Algorithm",
    model: Format | None,
    runs: int,
    seed: int,
    functional: Cotangent | None = None,
    mode: Callable[..., Any] | None = None,
) -> dict[str, Array]:
    """What ``runs`` copies of the case, along the batch, give in the precision of ``model`` (None: float64).

    The output and, where there is one, the state; or, with a functional, its gradient by input field.
    ``mode`` makes another dispatch mode than `ProductRounding`, of the same arguments.
    """
    import torch

    from verify.audit.tolerance.prologue import prepared
    from verify.audit.tolerance.rounding import StochasticRounding
    from verify.audit.tolerance.tensor_core import ProductRounding, core_named

    arrays = {name: _tiled(x, runs) for name, x in case.arrays().items()}
    arguments: dict[str, Any] = {"scale": case.scale}
    if algorithm.chunk_size is not None:
        arguments[_BLOCK[algorithm.form]] = algorithm.chunk_size
    if case.kind.stateful:
        arguments["output_final_state"] = True
    function = _function(case, algorithm)
    made, core = mode or ProductRounding, core_named(algorithm.accumulate, algorithm.factors)
    options: dict[str, Any] = {"factors": algorithm.factors, "core": core}
    rounding = made(model, runs, runs // 2, seed, **options) if model else contextlib.nullcontext()
    with torch.no_grad(), rounding:
        if isinstance(rounding, StochasticRounding) and algorithm.prepares:
            arrays = prepared(arrays, algorithm, rounding)
        if model and algorithm.gate_sums != "segment" and case.kind.gate:
            # Backward, subtracting adds other errors: see `gradient.running`.
            base2 = algorithm.gate_sums == "running-log2"
            arrays["g"] = _as_subtracted(arrays["g"], algorithm.chunk_size, _LOG2_E if base2 else 1.0)
    if functional is not None:
        arrays = {name: x.requires_grad_() for name, x in arrays.items()}
    with torch.set_grad_enabled(functional is not None), rounding:
        output, state = function(**arrays, **arguments)
        results = {"output": output, "state": state} if case.kind.stateful else {"output": output}
        if functional is not None:
            results = _gradients(arrays, results, functional, runs)
    return {name: x.numpy() for name, x in results.items()}


def _function(case: Case, algorithm: "Algorithm") -> Callable[..., Any]:
    if algorithm.inverse == "doubling":
        from verify.audit.tolerance.doubling import doubling_delta_rule

        return doubling_delta_rule
    return mechanism.kernel(case.mechanism, algorithm.form)


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


def _as_subtracted(g: "Tensor", chunk_size: int | None, factor: float = 1.0) -> "Tensor":
    """The gates that differences of rounded running sums amount to, chunk by chunk along T.

    The sums are multiplied by ``factor``: with log2 e their grid is coarser. Rounded at random, two of these
    may change places, as they never do when rounded to nearest; no decay is made of that.

    Our model sums gates over segments. Fed with these, every sum it forms is the difference of two running
    sums that were rounded, which is what such a kernel computes. No gate becomes positive: rounding is
    monotone and the earlier sum lies on the grid.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    chunks = []
    for chunk in torch.split(g, chunk_size or g.shape[1], dim=1):
        sums = chunk.cumsum(1) if factor == 1 else chunk.cumsum(1) * factor
        with _disable_current_modes():
            steps = sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1])) / factor
            chunks.append(steps if factor == 1 else steps.clamp(max=0))
    return torch.cat(chunks, dim=1) if chunks else g
