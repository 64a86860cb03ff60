"""Whether any rounding takes our kernels past the rigorous bound: many small random cells against balls.

A cell is one sequence and head of a batch whose mechanism, form, chunk, input class, dtype and shape are
drawn at random. Its output rows and final state, as the kernel returns them, are compared with balls that
enclose the exact ones: a cell is sound when every ball shows its error to be within the bound. In float32 the
kernel's operations are run again with errors drawn at random up to one unit of roundoff, more than rounding
to nearest makes of them. Beside it stands what the probabilistic model predicts.

Run: ``python tests/bench/bench_soundness.py [--cells 100000] [--seed 0] [--folder build/soundness]`` from the
repository root. Batches already in the folder are not run again. Writes ``docs/soundness.md`` and
``docs/calibration.png``; of some mechanisms alone (``--mechanisms dplr gdn2``) the page is only printed.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verify.audit.case import Array, Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, InputClass, draw_case
from verify.audit.mechanism import MECHANISMS, kernel, named
from verify.audit.reference.ball import PRECISION, balls
from verify.audit.reference.confirm import Row, compare
from verify.audit.reference.results import Reference, float64_reference
from verify.audit.tolerance.predicted import model
from verify.audit.tolerance.predicted.bounds import underflow
from verify.audit.tolerance.predicted.prediction import Algorithm, predict
from verify.audit.tolerance.worst_case.rigorous import WorstCase, derivation, worst_case
from verify.numbers.formats import FLOAT32, Format

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

CHUNKS = (1, 2, 3, 4, 5, 8, 16, 24, 40)
DTYPES = ("float32", "float32", "bfloat16", "float64")
DIRECTED_RUNS = 4
# A random rounding to a format of one more bit errs by less than one unit of roundoff of float32.
WITHIN_ONE_ROUNDOFF = Format("float25", FLOAT32.precision + 1, FLOAT32.min_exponent, FLOAT32.max_exponent)
Run = Callable[[Case, Algorithm], tuple[Array, Array | None]]


@dataclass(frozen=True)
class Plan:
    """One batch: everything that is drawn."""

    kind: InputClass
    mechanism: str
    algorithm: Algorithm
    dtype: str
    shape: Shape
    seed: int
    with_state: bool

    def case(self) -> Case:
        return draw_case(
            self.kind,
            self.mechanism,
            self.shape,
            dtype=self.dtype,
            seed=self.seed,
            with_state=self.with_state,
        )


def plan(seed: int, index: int, batch: int = 40, mechanisms: Sequence[str] = tuple(MECHANISMS)) -> Plan:
    """The batch of that number."""
    rng = np.random.default_rng([seed, index])
    choices = {
        name: forms
        for name in mechanisms
        if (forms := [form for form in named(name).forms if _bounded(name, form)])
    }
    name = list(choices)[rng.integers(len(choices))]
    form = choices[name][rng.integers(len(choices[name]))]
    dtype = str(rng.choice(DTYPES))
    kinds = [kind for kind in REAL_CLASSES if kind.suits(named(name))]
    long = rng.random() < 0.25
    shape = Shape(
        B=batch,
        T=int(rng.integers(17, 41) if long else rng.integers(1, 17)),
        H=1,
        HV=int(rng.integers(1, 3)),
        K=int(rng.integers(2, 9)),
        V=int(rng.integers(1, 6)),
    )
    chunk = int(rng.choice(CHUNKS))
    kind = kinds[rng.integers(len(kinds))]
    drawn = int(rng.integers(1 << 31))
    return Plan(kind, name, _algorithm(form, chunk, dtype), dtype, shape, drawn, bool(rng.random() < 0.5))


def _bounded(name: str, form: str) -> bool:
    return derivation(named(name), _algorithm(form, 8, "float32")) is not None


def _algorithm(form: str, chunk: int, dtype: str) -> Algorithm:
    compute = "float64" if dtype == "float64" else "float32"
    return Algorithm(form, None if form == "recurrent" else chunk, compute, dtype, compute)


def ours(case: Case, algorithm: Algorithm) -> tuple[Array, Array | None]:
    """Output and final state of our kernel, in the case's dtype."""
    options: dict[str, Any] = {"scale": case.scale}
    if algorithm.chunk_size is not None:
        options["chunk_size" if algorithm.form == "chunked" else "tile_size"] = algorithm.chunk_size
    if case.kind.stateful:
        options["output_final_state"] = True
    arrays = {n: torch.from_numpy(x).to(getattr(torch, case.dtype_of(n))) for n, x in case.arrays().items()}
    with torch.no_grad():
        output, state = kernel(case.mechanism, algorithm.form)(**arrays, **options)
    return output.double().numpy(), state.double().numpy() if case.kind.stateful else None


def check(batch: Plan, run: Run = ours, sigma: bool = True) -> dict[str, Any]:
    """One batch: how many rows balls show to be within the bound, and how far inside they are."""
    case = batch.case()
    reference = float64_reference(case)
    bound = worst_case(case, reference, batch.algorithm)
    output, state = run(case, batch.algorithm)
    found = compare(_rows(case, output, state, bound))
    ratios = _ratios(output, state, reference, bound)
    entry = {
        "mechanism": batch.mechanism,
        "form": batch.algorithm.form,
        "chunk": batch.algorithm.chunk_size,
        "class": batch.kind.name,
        "dtype": batch.dtype,
        "shape": dataclasses.asdict(batch.shape),
        "seed": batch.seed,
        "cells": batch.shape.B * batch.shape.HV,
        "confirmed": found.confirmed,
        "contradicted": found.contradicted,
        "undecided": found.undecided,
        "unbounded": int(np.count_nonzero(~np.isfinite(bound.output).all(1))),
        "over_bound": [float(f"{x:.4g}") for x in ratios.ravel()],
        "directed": None,
        "over_sigma": None,
    }
    if batch.dtype == "float32":
        entry["directed"] = [float(f"{x:.4g}") for x in _directed(case, batch.algorithm, reference, bound)]
    if sigma:
        entry["over_sigma"] = _over_sigma(case, batch.algorithm, reference, output)
    return entry


def _rows(case: Case, output: Array, state: Array | None, bound: WorstCase) -> Iterator[Row]:
    """Every output row and state of the kernel, with balls around the exact ones, and its bound."""
    from flint import ctx

    exact, final = balls(case)
    with ctx.workprec(PRECISION):
        for b, t, h in np.ndindex(output.shape[:3]):
            yield list(exact[b, t, h]), output[b, t, h].tolist(), float(bound.output[b, t, h])
        if state is not None:
            for b, h in np.ndindex(state.shape[:2]):
                yield list(final[b, h].flat), state[b, h].ravel().tolist(), float(bound.state[b, h])


def _ratios(output: Array, state: Array | None, reference: Reference, bound: WorstCase) -> Array:
    """[B, HV]: the largest error over its bound among a cell's rows."""
    worst = _over(np.linalg.norm(output - reference.output, axis=-1), bound.output).max(1)
    if state is not None:
        own = _over(np.linalg.norm(state - reference.final_state, axis=(-2, -1)), bound.state)
        worst = np.maximum(worst, own)
    return np.asarray(worst)


def _over(error: Array, scale: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error == 0, 0.0, error / scale)


def _directed(case: Case, algorithm: Algorithm, reference: Reference, bound: WorstCase) -> Array:
    """[B * HV]: the same for the worst of several runs whose every operation errs by up to one roundoff."""
    found = model.run(case, algorithm, WITHIN_ONE_ROUNDOFF, DIRECTED_RUNS, case.seed)
    per_run = {name: x.reshape(DIRECTED_RUNS, -1, *x.shape[1:]) for name, x in found.items()}
    states = per_run.get("state", [None] * DIRECTED_RUNS)
    pairs = zip(per_run["output"], states, strict=True)
    return np.asarray(np.max([_ratios(o, s, reference, bound) for o, s in pairs], axis=0).ravel())


def _over_sigma(case: Case, algorithm: Algorithm, reference: Reference, output: Array) -> list[float]:
    """The errors of output rows in units of their predicted deviation, where it is above what may underflow,
    which the prediction leaves to the tolerance."""
    predicted = predict(case, reference, algorithm, seed=case.seed).output
    error = np.linalg.norm(output - reference.output, axis=-1)
    # Beside the reference's own error, which the tolerance adds.
    error = np.maximum(error - reference.output_error, 0.0)
    decides = predicted > underflow(case, algorithm)[0]
    return [float(f"{x:.3g}") for x in error[decides] / predicted[decides]]


def campaign(cells: int, seed: int, folder: Path, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Batches until that many cells are checked; those in the folder are taken as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("-".join(["seed", str(seed), *only]) + ".jsonl")
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    total = sum(entry["cells"] for entry in done)
    with path.open("a") as file:
        while total < cells:
            batch = plan(seed, len(done), mechanisms=only or tuple(MECHANISMS))
            entry = check(batch, sigma=len(done) % 4 == 0)
            done.append(entry)
            total += entry["cells"]
            file.write(json.dumps(entry) + "\n")
            file.flush()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "soundness")
    parser.add_argument("--mechanisms", nargs="+", choices=list(MECHANISMS), default=[])
    options = parser.parse_args()
    torch.set_num_threads(1)
    entries = campaign(options.cells, options.seed, options.folder, options.mechanisms)
    broken = sum(entry["contradicted"] + entry["undecided"] for entry in entries)

    from soundness_distance import distances
    from soundness_page import page, plot

    if options.mechanisms:
        print(page(entries, options.seed))
        sys.exit(1 if broken else 0)
    text = page(entries, options.seed, list(distances(ours)))
    path = ROOT / "docs" / "soundness.md"
    # The last section is of another program.
    _, *further = path.read_text().partition("\n# Gradients\n") if path.exists() else ("", "", "")
    path.write_text(text + "".join(further))
    plot(entries, ROOT / "docs" / "calibration.png")
    print(text)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
