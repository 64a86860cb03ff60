"""How far from the exact result the rounding errors of a kernel's algorithm should take it."""

import hashlib
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.convention import Convention
from verify.audit.reference.results import Reference
from verify.model import digest, environment, registry
from verify.model.errors import RequestError
from verify.numbers.formats import FLOAT64, Format, format_named

if TYPE_CHECKING:
    from torch import Tensor

RUNS = 24
_OUTPUT_SEED_OFFSET = 1


@dataclass(frozen=True)
class Algorithm:
    """What a kernel computes, as far as its rounding errors depend on it.

    Args:
        form: "recurrent" or "chunked".
        chunk_size: tokens per chunk; None for the recurrent form.
        gate_sums: "running" when exponents are differences of running sums over a chunk, which lose the
            digits of small gates behind a large one; "segment" when they are sums of the gates between.
        compute_dtype: the format of every intermediate.
        output_dtype: the format of the output; the state comes back in ``state_dtype``.
    """

    form: str
    chunk_size: int | None
    compute_dtype: str
    output_dtype: str
    state_dtype: str
    gate_sums: str = "segment"

    @classmethod
    def of(cls, convention: Convention, dtype: str) -> Self:
        """What a convention declares, for inputs of ``dtype``."""
        return cls(
            form=convention.form,
            chunk_size=convention.chunk_size,
            compute_dtype=convention.resolve(convention.compute_dtype, dtype),
            output_dtype=convention.resolve(convention.output_dtype, dtype),
            state_dtype=convention.resolve(convention.state_dtype, dtype),
            gate_sums="segment" if convention.chunk_size is None else convention.gate_sums,
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """How far rounding should take a kernel from the reference, as a root mean square of row norms.

    The square is the mean over coherent runs plus the mean over incoherent ones: whichever of the two each
    operation of a kernel resembles, its share of the variance is in the sum.

    Args:
        output: ``[B, T, HV]``, of the 2-norm over V.
        state: ``[B, HV]``, of the Frobenius norm.
        runs: the number of independent runs of each kind.
    """

    output: Array
    state: Array
    runs: int


def predict(
    case: Case,
    reference: Reference,
    algorithm: Algorithm,
    *,
    runs: int = RUNS,
    seed: int = 0,
    cache: Path | None = None,
) -> Prediction:
    """Run the algorithm's model ``runs`` times per kind of stochastic rounding and measure its deviations.

    Args:
        case: the input.
        reference: its exact result.
        algorithm: form, chunk size and formats of the kernel.
        runs: number of runs of each kind; also the degrees of freedom of the prediction.
        seed: seed of the roundings.
        cache: folder of earlier predictions, found by a hash of all of the above and of the sources.

    Raises:
        RequestError: a format is not one of those of `verify.numbers.formats`.
    """
    path = cache / f"{_key(case, algorithm, runs, seed)}.npz" if cache else None
    if path and path.exists():
        with np.load(path) as stored:
            return Prediction(stored["output"], stored["state"], runs)
    output, state = deviations(case, reference, algorithm, runs=runs, seed=seed)
    prediction = Prediction(
        output=np.sqrt(np.square(output).sum(-1).sum(0) / runs),
        state=np.sqrt(np.square(state).sum((-1, -2)).sum(0) / runs),
        runs=runs,
    )
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, output=prediction.output, state=prediction.state)
        partial.replace(path)
    return prediction


def deviations(
    case: Case, reference: Reference, algorithm: Algorithm, *, runs: int, seed: int
) -> tuple[Array, Array]:
    """Deviation of each run from the reference: output [2 runs, B, T, HV, V], state [2 runs, B, HV, K, V].

    The first half of the runs is coherent, the second is not.

    For float64 computation, which cannot be rounded within float64, the errors are those of float32
    arithmetic times 2^-29: to first order in u a rounding error is proportional to u.
    """
    compute = format_named(algorithm.compute_dtype)
    model = format_named("float32") if compute == FLOAT64 else compute
    ratio = float(compute.unit_roundoff / model.unit_roundoff)
    rounded = _run(case, algorithm, model, 2 * runs, seed)
    exact = (reference.output, reference.final_state)
    plain = _run(case, algorithm, None, 1, seed) if ratio < 1 else exact
    results = []
    for values, plain_values, exact_values, dtype in zip(
        rounded, plain, exact, (algorithm.output_dtype, algorithm.state_dtype), strict=True
    ):
        deviation = (values.reshape(2 * runs, *exact_values.shape) - plain_values) * ratio
        target = format_named(dtype)
        if target.precision < compute.precision:
            # Independent draws suffice here: nearest rounding errs by no more than each one's deviation.
            noise = np.random.default_rng([seed, _OUTPUT_SEED_OFFSET])
            value = exact_values + deviation
            deviation = round_randomly(value, target, noise) - exact_values
        results.append(deviation)
    return results[0], results[1]


def _run(case: Case, algorithm: Algorithm, model: Format | None, runs: int, seed: int) -> tuple[Array, Array]:
    """Output and final state of the model, ``runs`` copies of the case along the batch."""
    import contextlib

    import torch

    from verify.audit.tolerance.rounding import StochasticRounding

    def tiled(x: Array) -> "Tensor":
        return torch.from_numpy(np.tile(x, (runs, *[1] * (x.ndim - 1))))

    arrays = {name: tiled(x) for name, x in case.arrays().items()}
    options = {} if algorithm.chunk_size is None else {"chunk_size": algorithm.chunk_size}
    function = mechanism.kernel(case.mechanism, algorithm.form)
    mode = StochasticRounding(model, runs, runs // 2, seed) if model else contextlib.nullcontext()
    with torch.no_grad(), mode:
        if model and algorithm.gate_sums == "running":
            arrays["g"] = _as_subtracted(arrays["g"], algorithm.chunk_size)
        output, state = function(**arrays, scale=case.scale, output_final_state=True, **options)
    return output.numpy(), state.numpy()


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


def round_randomly(x: Array, target: Format, rng: np.random.Generator) -> Array:
    """Each entry moved to a neighbour in ``target``, subnormals included, with mean error 0.

    Raises:
        RequestError: an entry lies outside the format's range.
    """
    if (np.abs(x) > float(target.max)).any():
        raise RequestError(f"{np.abs(x).max():.3g} is beyond the largest number of {target.name}")
    _, exponent = np.frexp(x)
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, target.min_exponent) - target.precision + 1)
    return np.asarray(np.floor(x / quantum + rng.random(x.shape)) * quantum)


def _key(case: Case, algorithm: Algorithm, runs: int, seed: int) -> str:
    """A hash of everything a prediction depends on."""
    arrays = {name: hashlib.sha256(x.tobytes()).hexdigest() for name, x in case.arrays().items()}
    settings = [
        case.mechanism,
        case.scale,
        list(case.q.shape),
        list(case.v.shape),
        vars(algorithm),
        runs,
        seed,
    ]
    return digest.of_json([arrays, settings, _sources()])


@cached
def _sources() -> list[str | None]:
    """The code a prediction is made with: the model's and the audit's sources, and torch's version."""
    audit = Path(__file__).parents[1]
    rooms = [
        audit / "tolerance",
        audit / "reference",
        audit.parent / "numbers",
        registry.room_path("kernels"),
    ]
    return [digest.of_sources(rooms), environment.version("torch")]
