"""Runs the model of a kernel's algorithm, forward and backward, with every operation rounded at random."""

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.gradient.functional import CONSTANTS, Cotangent
from verify.numbers.formats import Format

if TYPE_CHECKING:
    from torch import Tensor

    from verify.audit.tolerance.predicted.prediction import Algorithm

_LOG2_E = math.log2(math.e)
_BLOCK = {"chunked": "chunk_size", "tiled": "tile_size"}
MADE = "made "


def run(
    case: Case,
    algorithm: "Algorithm",
    model: Format | None,
    runs: int,
    seed: int,
    functional: Cotangent | None = None,
    mode: Callable[..., Any] | None = None,
    handed: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """What ``runs`` copies of the case, along the batch, give in the precision of ``model`` (None: float64).

    The output and, where there is one, the state; or, with a functional, its gradient by input field.
    ``mode`` makes another dispatch mode than `ProductRounding`, of the same arguments. ``handed``, for
    gradients: the inputs and constants they are of, where those are not the case's own inputs; then the
    gradient of what is made of an input has its name behind `MADE`.
    """
    import torch

    from verify.audit.tolerance.predicted.prologue import prepared
    from verify.audit.tolerance.predicted.rounding import StochasticRounding
    from verify.audit.tolerance.tensor_core import ProductRounding, core_named

    core = core_named(algorithm.accumulate, algorithm.factors)
    options: dict[str, Any] = {"factors": algorithm.factors, "core": core}
    rounding: Any = contextlib.nullcontext()
    if model:
        rounding = (mode or ProductRounding)(model, runs, runs // 2, seed, **options)
    if functional is not None:
        return _differentiated(case, algorithm, runs, functional, handed or case.arrays(), rounding)
    arrays = {name: _tiled(x, runs) for name, x in case.arrays().items()}
    with torch.no_grad(), rounding:
        if isinstance(rounding, StochasticRounding):
            arrays = prepared(arrays, algorithm, rounding) if algorithm.prepares else arrays
            arrays = _subtracted(case, arrays, algorithm)
        output, state = _function(case, algorithm)(**arrays, **_arguments(case, algorithm))
    results = {"output": output, "state": state} if case.kind.stateful else {"output": output}
    return {name: x.numpy() for name, x in results.items()}


def _differentiated(
    case: Case,
    algorithm: "Algorithm",
    runs: int,
    functional: Cotangent,
    handed: Mapping[str, Array],
    rounding: Any,
) -> dict[str, Array]:
    """The gradients of what is handed over, and of what activations make of it, every operation rounded."""
    import torch

    from verify.audit.tolerance.predicted.differentiable import made_of, with_sink
    from verify.audit.tolerance.predicted.rounding import StochasticRounding

    inside = rounding if isinstance(rounding, StochasticRounding) else None
    leaves = {name: _copies(name, x, runs).requires_grad_() for name, x in handed.items()}
    function = _function(case, algorithm)
    if case.kind.sink is not None:
        everywhere = torch.full((runs, case.shape.HV), case.kind.sink, dtype=torch.float64)
        plain, sink = mechanism.kernel(case.kind.room, algorithm.form), leaves.get("sink", everywhere)
        function = functools.partial(with_sink, plain, sink=sink)
    with torch.enable_grad(), rounding:
        made = made_of(leaves, algorithm, inside, runs)
        arrays = {name: leaves[name] for name in case.arrays()} | made
        # Backward, subtracting adds other errors: see `gradient.running`.
        arrays = arrays if inside is None else _subtracted(case, arrays, algorithm)
        output, state = function(**arrays, **_arguments(case, algorithm))
        results = {"output": output, "state": state} if case.kind.stateful else {"output": output}
        targets = leaves | {MADE + name: x for name, x in made.items()}
        results = _gradients(targets, results, functional, runs)
    return {name: x.numpy() for name, x in results.items()}


def _arguments(case: Case, algorithm: "Algorithm") -> dict[str, Any]:
    found: dict[str, Any] = {"scale": case.scale}
    if algorithm.chunk_size is not None:
        found[_BLOCK[algorithm.form]] = algorithm.chunk_size
    return found | {"output_final_state": True} if case.kind.stateful else found


def _subtracted(case: Case, arrays: Mapping[str, "Tensor"], algorithm: "Algorithm") -> dict[str, "Tensor"]:
    """The inputs with the gates of `_as_subtracted`, where a kernel subtracts sums; gradients pass on."""
    import torch

    from verify.audit.tolerance.predicted.differentiable import instead

    if algorithm.gate_sums == "segment" or not case.kind.gate:
        return dict(arrays)
    factor = _LOG2_E if algorithm.gate_sums == "running-log2" else 1.0
    with torch.no_grad():
        gates = _as_subtracted(arrays["g"], algorithm.chunk_size, factor)
    return {**arrays, "g": instead(arrays["g"], gates)}


def _function(case: Case, algorithm: "Algorithm") -> Callable[..., Any]:
    if algorithm.inverse == "doubling":
        from verify.audit.tolerance.predicted.doubling import doubling_delta_rule

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


def _copies(field: str, x: Array, runs: int) -> "Tensor":
    """Of a constant, which has no sequences, one copy for each run."""
    return _tiled(x[None] if field in CONSTANTS else x, runs)


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
