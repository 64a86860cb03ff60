"""How far from the exact result the rounding errors of a kernel's algorithm should take it."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as cached
from pathlib import Path
from typing import Any, Self

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention.convention import Convention
from verify.audit.convention.forms import PLAIN, GateForm
from verify.audit.gradient.functional import Cotangent, norm
from verify.audit.reference.results import Reference
from verify.audit.tolerance.predicted import model
from verify.audit.tolerance.predicted.deviations import deviations
from verify.model import digest, environment, registry
from verify.numbers.formats import Format, format_named

RUNS = 24
_ROWS = ("output", "state", "output_bias", "state_bias")


@dataclass(frozen=True)
class Algorithm:
    """What a kernel computes, as far as its rounding errors depend on it.

    Args:
        form: one of the mechanism's forms.
        chunk_size: tokens per chunk or keys per tile; None for the recurrent form.
        gate_sums: "running" when exponents are differences of running sums over a chunk, which lose the
            digits of small gates behind a large one; "running-log2" when these are multiplied by log2 e
            first; "segment" when they are sums of the gates between; "whole" when a recurrent kernel finds
            the gradients of gates as running sums over all later tokens.
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
    qk_norm_eps: float = 0.0
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
            gate_sums=_gate_sums(convention),
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
            qk_norm_eps=convention.qk_norm_eps if convention.qk_norm != "none" else 0.0,
            norm_dtype=dtype if convention.qk_norm == "unit-rounded" else "",
        )


def _gate_sums(convention: Convention) -> str:
    """Without chunks there are no sums of gates, and of their gradients only where they are declared."""
    recurrent = convention.form == "recurrent"
    return "segment" if recurrent and convention.gate_sums != "whole" else convention.gate_sums


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
    case: Case,
    exact: Mapping[str, Array],
    algorithm: Algorithm,
    functional: Cotangent | None = None,
    handed: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """The norms of what cutting toward zero shifts each result by; none where nothing is cut."""
    if algorithm.accumulate == "nearest":
        return {}
    from verify.audit.tolerance.tensor_core import Biased

    short = format_named("float32")
    found = model.run(case, algorithm, short, 1, 0, functional, mode=Biased, handed=handed)
    return {
        name: _norms(case, name, found[name] - values) if functional else _lengths(name, found[name] - values)
        for name, values in exact.items()
    }


def _norms(case: Case, name: str, array: Array) -> Array:
    """Of the rows of a gradient, also of what is made of an input; leading axes are kept."""
    return norm(case, name.removeprefix(model.MADE), array)


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
    gradients: Mapping[str, Array],
    algorithm: Algorithm,
    handed: Mapping[str, tuple[Array, str]],
    *,
    runs: int = RUNS,
    seed: int = 0,
    cache: Path | None = None,
) -> GradientPrediction:
    """As `predict`, for the gradients that differentiating the model's operations gives.

    Args:
        case: the input that is asked for.
        functional: what is differentiated.
        gradients: exact ones, by input and constant of the function; with `model.MADE` before the name, of
            what activations make of an input.
        algorithm: form, chunk size, formats and activations of the kernel.
        handed: inputs and constants, and the formats these and their gradients have.
        runs, seed, cache: as of `predict`.
    """
    arrays = {field: array for field, (array, _) in handed.items()}
    name = f"{key(case, algorithm, runs, seed, functional.output, functional.state, *arrays.values())}.npz"
    path = cache / name if cache else None
    if path and path.exists():
        with np.load(path) as stored:
            return GradientPrediction({field: stored[field] for field in stored.files}, runs)
    dtypes = {field: handed[field][1] if field in handed else "float64" for field in gradients}
    options: dict[str, Any] = {"functional": functional, "handed": arrays}
    apart = deviations(case, gradients, dtypes, algorithm, runs=runs, seed=seed, **options)
    rows = {
        field: np.sqrt(np.square(_norms(case, field, array)).sum(0) / runs) for field, array in apart.items()
    }
    for field, shift in biases(case, gradients, algorithm, **options).items():
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
    audit = Path(__file__).parents[2]
    rooms = [
        audit / "tolerance",
        audit / "reference",
        audit / "gradient",
        audit / "convention" / "forms.py",
        audit.parent / "numbers",
        registry.room_path("kernels"),
    ]
    return [digest.of_sources(rooms), environment.version("torch")]
