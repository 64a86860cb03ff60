"""Whether any rounding takes the gradients of our kernels past the rigorous bound: many small random cells.

A cell is one sequence and output head of a batch whose mechanism, form, chunk, input class, dtype and shape
are drawn at random. Compared with the reference, whose own error is part of the bound, are the gradients of
our kernel as it returns them; in float32 also those of four runs whose every operation, forward and backward,
errs by up to one unit of roundoff: up, down, away from zero, at random. In every tenth batch balls take the
place of the reference.

Run: ``python tests/bench/bench_gradient_soundness.py [--cells 10000] [--seed 0] [--folder build/soundness]``
from the repository root. Batches already in the folder are not run again. Writes the last section of
``docs/soundness.md``.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verify.audit.case import Array, Case, Shape
from verify.audit.gradient.confirm import ball_gradients
from verify.audit.gradient.functional import Cotangent, cotangent, norm
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS, kernel, named
from verify.audit.reference.confirm import compare
from verify.audit.tolerance.predicted import model
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.gradient.rigorous import derivation, worst_gradients

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "unit" / "audit")]

from directed_rounding import DIRECTIONS, WITHIN_ONE_ROUNDOFF, Directed  # noqa: E402

HEADING = "# Gradients\n"
CHUNKS = (1, 2, 3, 4, 8, 16, 24)
DTYPES = ("float32", "float32", "bfloat16", "float64")
KINDS = {kind.name: kind for kind in REAL_CLASSES}


@dataclass(frozen=True)
class Plan:
    """One batch: everything that is drawn."""

    kind: str
    mechanism: str
    algorithm: Algorithm
    dtype: str
    shape: Shape
    seed: int
    with_state: bool

    def case(self) -> Case:
        return draw_case(
            KINDS[self.kind],
            self.mechanism,
            self.shape,
            dtype=self.dtype,
            seed=self.seed,
            with_state=self.with_state,
        )


def plan(seed: int, index: int, batch: int = 16) -> Plan:
    """The batch of that number."""
    rng = np.random.default_rng([seed, index, 1])
    forms = [(name, form) for name in MECHANISMS for form in named(name).forms if _bounded(name, form)]
    name, form = forms[rng.integers(len(forms))]
    dtype = str(rng.choice(DTYPES))
    kinds = [kind.name for kind in REAL_CLASSES if kind.suits(named(name))]
    kind = kinds[rng.integers(len(kinds))]
    # Differences of running sums have no value after a gate of -inf.
    sums = "segment" if kind == "gate-infinite" else str(rng.choice(["segment", "running"]))
    long = rng.random() < 0.2
    return Plan(
        kind=kind,
        mechanism=name,
        algorithm=algorithm(form, int(rng.choice(CHUNKS)), dtype, sums),
        dtype=dtype,
        shape=Shape(
            B=batch,
            T=int(rng.integers(13, 28) if long else rng.integers(1, 13)),
            H=1,
            HV=int(rng.integers(1, 3)),
            K=int(rng.integers(1, 7)),
            V=int(rng.integers(1, 6)),
        ),
        seed=int(rng.integers(1 << 31)),
        with_state=named(name).stateful and bool(rng.random() < 0.7),
    )


def _bounded(name: str, form: str) -> bool:
    return derivation(named(name), algorithm(form, 8, "float32")) is not None


def algorithm(form: str, chunk: int, dtype: str, gate_sums: str = "segment") -> Algorithm:
    compute = "float64" if dtype == "float64" else "float32"
    sums = gate_sums if form == "chunked" else "segment"
    return Algorithm(form, None if form == "recurrent" else chunk, compute, dtype, compute, gate_sums=sums)


def ours(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, Array]:
    """Gradients of our kernel, by input field, in the case's dtype."""
    options: dict[str, Any] = {"scale": case.scale}
    if algorithm.chunk_size is not None:
        options["chunk_size" if algorithm.form == "chunked" else "tile_size"] = algorithm.chunk_size
    if case.kind.stateful:
        options["output_final_state"] = True
    inputs = {
        name: torch.from_numpy(x).to(getattr(torch, case.dtype_of(name))).requires_grad_()
        for name, x in case.arrays().items()
    }
    output, state = kernel(case.mechanism, algorithm.form)(**inputs, **options)
    total = (output.double() * torch.from_numpy(functional.output)).sum()
    if case.kind.stateful:
        total = total + (state.double() * torch.from_numpy(functional.state)).sum()
    found = torch.autograd.grad(total, list(inputs.values()))
    return {name: x.double().numpy() for name, x in zip(inputs, found, strict=True)}


def check(batch: Plan, with_balls: bool) -> dict[str, Any]:
    """One batch: by field the largest error over its bound, of ours and of the directed runs."""
    case = batch.case()
    functional = cotangent(case, case.kind.stateful)
    exact = float64_gradients(case, functional)
    bound = worst_gradients(case, functional, exact, batch.algorithm)
    assert bound is not None
    found = ours(case, functional, batch.algorithm)
    runs = None
    if batch.dtype == "float32":
        settings = (WITHIN_ONE_ROUNDOFF, DIRECTIONS, batch.seed, functional)
        runs = _over(model.run(case, batch.algorithm, *settings, mode=Directed), case, exact.values, bound)
    return {
        **{name: getattr(batch, name) for name in ("kind", "mechanism", "dtype", "seed")},
        "form": batch.algorithm.form,
        "chunk": batch.algorithm.chunk_size,
        "shape": dataclasses.asdict(batch.shape),
        "cells": batch.shape.B * batch.shape.HV,
        "rows": sum(x.size for x in bound.values()),
        "unbounded": int(sum(np.count_nonzero(~np.isfinite(x)) for x in bound.values())),
        "over_bound": _over(found, case, exact.values, bound),
        "directed": runs,
        "balls": _by_balls(case, functional, found, bound) if with_balls else None,
    }


def _over(
    found: dict[str, Array], case: Case, exact: dict[str, Array], bound: dict[str, Array]
) -> dict[str, float]:
    """Infinite where a gradient is not finite."""
    ratios = {}
    for field, limit in bound.items():
        error = norm(case, field, found[field].reshape(-1, *exact[field].shape) - exact[field])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(error == 0, 0.0, error / limit)
        ratios[field] = float(f"{np.where(np.isnan(ratio), np.inf, ratio).max(initial=0.0):.4g}")
    return ratios


def _by_balls(
    case: Case, functional: Cotangent, found: dict[str, Array], bound: dict[str, Array]
) -> list[int]:
    """How many rows are shown to be within the bound, shown to be beyond it, left open."""
    from flint import ctx

    with ctx.workprec(128):
        exact = ball_gradients(case, functional)
        result = compare(
            [
                (
                    list(np.atleast_1d(np.asarray(exact[field][index], dtype=object)).ravel()),
                    np.atleast_1d(found[field][index]).ravel().tolist(),
                    float(limit[index]),
                )
                for field, limit in bound.items()
                for index in np.ndindex(limit.shape)
            ]
        )
    return [result.confirmed, result.contradicted, result.undecided]


def campaign(cells: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Batches until that many cells are checked; those in the folder are taken as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"gradients-{seed}.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    total = sum(entry["cells"] for entry in done)
    with path.open("a") as file:
        while total < cells:
            done.append(check(plan(seed, len(done)), with_balls=len(done) % 10 == 0))
            total += done[-1]["cells"]
            file.write(json.dumps(done[-1]) + "\n")
            file.flush()
    return done


def distances() -> list[list[str]]:
    """How far the bound is above the errors of our float32 kernels: largest bound over largest error."""
    rows = []
    for form, size in (("recurrent", 16), ("recurrent", 64), ("chunked", 16), ("chunked", 64)):
        for kind in ("random", "constant-key-0.97", "constant-key-1", "gate-strong"):
            shape = Shape(B=1, T=64, H=1, HV=2, K=size, V=size)
            case = draw_case(KINDS[kind], "kda", shape, dtype="float32", seed=1, with_state=True)
            functional, chosen = cotangent(case, True), algorithm(form, size, "float32")
            exact = float64_gradients(case, functional)
            bound = worst_gradients(case, functional, exact, chosen) or {}
            found = ours(case, functional, chosen)
            cells = []
            for field in ("q", "k", "v", "g", "beta", "initial_state"):
                error = norm(case, field, found[field] - exact.values[field]).max()
                cells.append(f"{float(f'{bound[field].max() / error:.2g}'):g}")
            rows.append([form if form == "recurrent" else f"chunks of {size}", str(size), kind, *cells])
    return rows


def section(entries: Sequence[dict[str, Any]], seed: int, rows: Sequence[Sequence[str]]) -> str:
    """The figures as the last section of the page."""
    cells, batches = sum(e["cells"] for e in entries), len(entries)
    ours_worst = [x for e in entries for x in e["over_bound"].values()]
    narrow, wide = (
        max(
            (x for e in entries if (e["dtype"] == "bfloat16") is b for x in e["over_bound"].values()),
            default=0,
        )
        for b in (True, False)
    )
    runs = [x for e in entries for x in (e["directed"] or {}).values()]
    directed = sum(e["cells"] for e in entries if e["directed"])
    balls = np.sum([e["balls"] for e in entries if e["balls"]], axis=0)
    lines = [
        HEADING,
        f"{cells} cells (one sequence and head each) in {batches} random batches (T up to 27, K up to 6, V up"
        f" to 5), seed {seed}: gradients of a functional of the output and the final state, for every input,"
        f" {sum(e['rows'] for e in entries)} rows and states.",
        "",
        "- our kernels, float32, bfloat16 and float64: beyond the bound"
        f" **{sum(x > 1 for x in ours_worst)}**, at most {wide:.2g} of it in float32 and float64, and"
        f" {narrow:.4g} in bfloat16, where storing a number can come to the whole bound.",
        "- every operation off by up to one unit of roundoff, up, down, away from zero and at random"
        f" ({DIRECTIONS} runs of {directed} cells): beyond the bound **{sum(x > 1 for x in runs)}**, at most"
        f" {max(runs, default=0):.2g} of it.",
        f"- against balls: {balls[0]} rows shown to be within the bound, **{balls[1]}** beyond it,"
        f" {balls[2]} left open.",
        f"- rows without a finite bound: {sum(e['unbounded'] for e in entries)}, of classes"
        f" {', '.join(sorted({e['kind'] for e in entries if e['unbounded']})) or 'none'}.",
        "",
        "Largest error over bound of the directed runs:",
        "",
        "| form | " + " | ".join(_FIELDS) + " |",
        "|---|" + "---|" * len(_FIELDS),
    ]
    for form in ("recurrent", "chunked", "tiled"):
        chosen = [e["directed"] for e in entries if e["form"] == form and e["directed"]]
        worst = {field: max((x.get(field, 0) for x in chosen), default=0) for field in _FIELDS}
        lines.append(f"| {form} | " + " | ".join(f"{x:.2g}" if x else "–" for x in worst.values()) + " |")
    lines += [
        "",
        "Largest bound over largest error of our float32 KDA kernels, 64 tokens, by gradient:",
        "",
        "| form | K = V | inputs | " + " | ".join(_FIELDS) + " |",
        "|---|---|---|" + "---|" * len(_FIELDS),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "Chunked delta rules that store the factors U and W have no such bound; those that solve for the"
        " difference do.",
        "",
        "Run again: `python tests/bench/bench_gradient_soundness.py` (resumes).",
    ]
    return "\n".join(lines) + "\n"


_FIELDS = ("q", "k", "v", "g", "beta", "initial_state")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "soundness")
    options = parser.parse_args()
    torch.set_num_threads(1)
    entries = campaign(options.cells, options.seed, options.folder)
    page, text = ROOT / "docs" / "soundness.md", section(entries, options.seed, distances())
    page.write_text(page.read_text().partition("\n" + HEADING)[0] + "\n" + text)
    print(text)
    beyond = [x > 1 for e in entries for part in ("over_bound", "directed") for x in (e[part] or {}).values()]
    sys.exit(1 if any(beyond) else 0)


if __name__ == "__main__":
    main()
