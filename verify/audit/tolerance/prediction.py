"""How far from the exact result the rounding errors of a kernel's algorithm should take it."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import Self

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention.convention import Convention
from verify.audit.convention.forms import PLAIN, GateForm
from verify.audit.gradient.functional import Cotangent, norm
from verify.audit.gradient.reference import Gradients
from verify.audit.reference.results import Reference
from verify.audit.tolerance import model
from verify.model import digest, environment, registry
from verify.model.errors import RequestError
from verify.numbers.formats import FLOAT64, Format, format_named

RUNS = 24
_OUTPUT_SEED_OFFSET = 1
_ROWS = ("output", "state", "output_bias", "state_bias")


@dataclass(frozen=True)
class Algorithm:
    """What a kernel computes, as far as its rounding errors depend on it.

    Args:
        form: one of the mechanism's forms.
        chunk_size: tokens per chunk or keys per tile; None for the recurrent form.
        gate_sums: "running" when exponents are differences of running sums over a chunk, which lose the
            digits of small gates behind a large one; "running-log2" when these are multiplied by log2 e
            first; "segment" when they are sums of the gates between.
        corrections: "factored" when a chunk's writes are U - W S, whose terms may cancel, which the gradients
            of beta feel; "solved" when one solve gives them.
        products: the format that both factors of a matrix product are rounded to; "" for what they are.
        accumulate: the tensor cores that add up matrix products; "nearest" where additions round to nearest.
        inverse: "doubling" when a chunk's matrix is inverted by its powers; else "substitution".
        compute_dtype: the format sums are formed in.
        storage_dtype: the format a chunked kernel keeps its matrices in between its steps.
        output_dtype: the format of the output; the state comes back in ``state_dtype``.
    """

    form: str
    chunk_size: int | None
    compute_dtype: str
    output_dtype: str
    state_dtype: str
    gate_sums: str = "segment"
    corrections: str = "solved"
    inverse: str = "substitution"
    products: str = ""
    accumulate: str = "nearest"
    storage_dtype: str = ""
    gates: GateForm = PLAIN
    beta_form: str = "value"
    qk_norm: str = "none"
    norm_dtype: str = ""
    """The format normed queries and keys are rounded to; "" for none."""

    @property
    def model_dtype(self) -> str:
        """The format of every operation of the model: the coarser one of sums and of what is stored."""
        both = (self.compute_dtype, self.storage_dtype or self.compute_dtype)
        return min(both, key=lambda name: format_named(name).precision)

    @property
    def exact_on_integers(self) -> bool:
        """Whether small integers stay exact: nothing is kept in a shorter format than sums are formed in."""
        return self.model_dtype == self.compute_dtype and not self.products

    @property
    def factors(self) -> Format | None:
        """The format of the factors of matrix products, where it is another."""
        return format_named(self.products) if self.products else None

    @property
    def prepares(self) -> bool:
        """Whether gates, strengths, queries or keys are computed from what is handed over."""
        return (self.gates.form, self.beta_form, self.qk_norm) != ("value", "value", "none")

    @classmethod
    def of(cls, convention: Convention, dtype: str) -> Self:
        """What a convention declares, for inputs of ``dtype``; tensor cores and short factors in float32."""
        single = convention.resolve(convention.compute_dtype, dtype) == "float32"
        return cls(
            form=convention.form,
            chunk_size=convention.chunk_size,
            compute_dtype=convention.resolve(convention.compute_dtype, dtype),
            output_dtype=convention.resolve(convention.output_dtype, dtype),
            state_dtype=convention.resolve(convention.state_dtype, dtype),
            gate_sums="segment" if convention.chunk_size is None else convention.gate_sums,
            corrections="solved" if convention.chunk_size is None else convention.corrections,
            inverse=convention.inverse,
            products="" if convention.products == "compute" or not single else convention.products,
            accumulate=convention.accumulate if single else "nearest",
            storage_dtype=""
            if convention.chunk_size is None or convention.storage_dtype == "compute"
            else convention.resolve(convention.storage_dtype, dtype),
            gates=PLAIN if convention.gate_form == "value" else convention.gates,
            beta_form=convention.beta_form,
            qk_norm=convention.qk_norm,
            norm_dtype=dtype if convention.qk_norm == "unit-rounded" else "",
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
        output_bias: what tensor cores shift the output by, ``[B, T, HV]``, an upper estimate; no part of
            ``output``, as it comes with the same sign in every run.
        state_bias: likewise of the state, ``[B, HV]``.
    """

    output: Array
    state: Array
    runs: int
    output_bias: Array | float = 0.0
    state_bias: Array | float = 0.0


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
            return Prediction(runs=runs, **{name: stored[name] for name in _ROWS})
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
        **{f"{name}_bias": x for name, x in biases(case, exact, algorithm).items()},
    )
    if path:
        store(path, {name: np.asarray(getattr(prediction, name)) for name in _ROWS})
    return prediction


def biases(
    case: Case, exact: Mapping[str, Array], algorithm: Algorithm, functional: Cotangent | None = None
) -> dict[str, Array]:
    """The norms of what cutting toward zero shifts each result by; none where nothing is cut."""
    if algorithm.accumulate == "nearest":
        return {}
    from verify.audit.tolerance.tensor_core import Biased

    found = model.run(case, algorithm, format_named("float32"), 1, 0, functional, mode=Biased)
    return {
        name: norm(case, name, found[name] - values) if functional else _lengths(name, found[name] - values)
        for name, values in exact.items()
    }


def _lengths(name: str, deviation: Array) -> Array:
    return np.asarray(np.sqrt(np.square(deviation).sum((-1, -2) if name == "state" else -1)))


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
    for field, shift in biases(case, gradients.values, algorithm, functional).items():
        rows[field] = rows[field] + shift
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
    """Deviation of each run from the unrounded one, named as `model.run` names them: ``[2 runs, ...]``.

    The first half of the runs is coherent, the second is not.

    For float64 computation, which cannot be rounded within float64, the errors are those of float32
    arithmetic times 2^-29: to first order in u a rounding error is proportional to u.
    """
    compute = format_named(algorithm.model_dtype)
    modelled = format_named("float32") if compute == FLOAT64 else compute
    ratio = float(compute.unit_roundoff / modelled.unit_roundoff)
    rounded = model.run(case, algorithm, modelled, 2 * runs, seed, functional)
    # Not the exact results: were the model wrong, its fault would pass for rounding and excuse any kernel.
    plain = model.run(case, algorithm, None, 1, seed, functional)
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
        dataclasses.asdict(algorithm),
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
        audit / "convention" / "forms.py",
        audit.parent / "numbers",
        registry.room_path("kernels"),
    ]
    return [digest.of_sources(rooms), environment.version("torch")]
