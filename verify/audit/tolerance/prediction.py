"""How far from the exact result the rounding errors of a kernel's algorithm should take it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import Self

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention import Convention
from verify.audit.gradient.functional import Cotangent, norm
from verify.audit.gradient.reference import Gradients
from verify.audit.reference.results import Reference
from verify.audit.tolerance import model
from verify.model import digest, environment, registry
from verify.model.errors import RequestError
from verify.numbers.formats import FLOAT64, Format, format_named

RUNS = 24
_OUTPUT_SEED_OFFSET = 1


@dataclass(frozen=True)
class Algorithm:
    """What a kernel computes, as far as its rounding errors depend on it.

    Args:
        form: one of the mechanism's forms.
        chunk_size: tokens per chunk or keys per tile; None for the recurrent form.
        gate_sums: "running" when exponents are differences of running sums over a chunk, which lose the
            digits of small gates behind a large one; "segment" when they are sums of the gates between.
        corrections: "factored" when a chunk's writes are U - W S, whose terms may cancel, which the gradients
            of beta feel; "solved" when one solve gives them.
        compute_dtype: the format of every intermediate.
        output_dtype: the format of the output; the state comes back in ``state_dtype``.
    """

    form: str
    chunk_size: int | None
    compute_dtype: str
    output_dtype: str
    state_dtype: str
    gate_sums: str = "segment"
    corrections: str = "solved"

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
            corrections="solved" if convention.chunk_size is None else convention.corrections,
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
    path = cache / f"{key(case, algorithm, runs, seed)}.npz" if cache else None
    if path and path.exists():
        with np.load(path) as stored:
            return Prediction(stored["output"], stored["state"], runs)
    dtypes = {"output": algorithm.output_dtype, "state": algorithm.state_dtype}
    exact = {"output": reference.output}
    if case.kind.stateful:
        exact["state"] = reference.final_state
    apart = deviations(case, exact, dtypes, algorithm, runs=runs, seed=seed)
    nothing = np.zeros(reference.final_state.shape[:2])
    prediction = Prediction(
        output=np.sqrt(np.square(apart["output"]).sum(-1).sum(0) / runs),
        state=np.sqrt(np.square(apart["state"]).sum((-1, -2)).sum(0) / runs) if "state" in apart else nothing,
        runs=runs,
    )
    if path:
        store(path, {"output": prediction.output, "state": prediction.state})
    return prediction


@dataclass(frozen=True, eq=False)
class GradientPrediction:
    """How far rounding should take each gradient from its reference, as a root mean square of row norms."""

    rows: dict[str, Array]
    runs: int


def predict_gradients(
    case: Case,
    functional: Cotangent,
    gradients: Gradients,
    algorithm: Algorithm,
    *,
    runs: int = RUNS,
    seed: int = 0,
    cache: Path | None = None,
) -> GradientPrediction:
    """As `predict`, for the gradients that differentiating the model's operations gives, by input field.

    A gradient comes back in the format of its input.
    """
    name = f"{key(case, algorithm, runs, seed, functional.output, functional.state)}.npz"
    path = cache / name if cache else None
    if path and path.exists():
        with np.load(path) as stored:
            return GradientPrediction({field: stored[field] for field in stored.files}, runs)
    dtypes = {field: case.dtype_of(field) for field in case.arrays()}
    apart = deviations(case, gradients.values, dtypes, algorithm, runs=runs, seed=seed, functional=functional)
    rows = {
        field: np.sqrt(np.square(norm(case, field, array)).sum(0) / runs) for field, array in apart.items()
    }
    if path:
        store(path, rows)
    return GradientPrediction(rows, runs)


def store(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write a file that is never seen half done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, allow_pickle=False, **arrays)
    partial.replace(path)


def deviations(
    case: Case,
    exact: Mapping[str, Array],
    dtypes: Mapping[str, str],
    algorithm: Algorithm,
    *,
    runs: int,
    seed: int,
    functional: Cotangent | None = None,
) -> dict[str, Array]:
    """Deviation of each run from the exact results, named as `model.run` names them: ``[2 runs, ...]``.

    The first half of the runs is coherent, the second is not.

    For float64 computation, which cannot be rounded within float64, the errors are those of float32
    arithmetic times 2^-29: to first order in u a rounding error is proportional to u.
    """
    compute = format_named(algorithm.compute_dtype)
    modelled = format_named("float32") if compute == FLOAT64 else compute
    ratio = float(compute.unit_roundoff / modelled.unit_roundoff)
    rounded = model.run(case, algorithm, modelled, 2 * runs, seed, functional)
    plain = exact if ratio == 1 else model.run(case, algorithm, None, 1, seed, functional)
    results = {}
    for name, values in exact.items():
        deviation = (rounded[name].reshape(2 * runs, *values.shape) - plain[name]) * ratio
        target = format_named(dtypes[name])
        if target.precision < compute.precision:
            # Independent draws suffice here: nearest rounding errs by no more than each one's deviation.
            noise = np.random.default_rng([seed, _OUTPUT_SEED_OFFSET])
            deviation = round_randomly(values + deviation, target, noise) - values
        results[name] = deviation
    return results


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


def key(case: Case, algorithm: Algorithm, runs: int, seed: int, *further: Array) -> str:
    """A hash of everything a prediction depends on."""
    named = case.arrays() | {str(i): x for i, x in enumerate(further)}
    arrays = {name: hashlib.sha256(x.tobytes()).hexdigest() for name, x in named.items()}
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
        audit / "gradient",
        audit.parent / "numbers",
        registry.room_path("kernels"),
    ]
    return [digest.of_sources(rooms), environment.version("torch")]
