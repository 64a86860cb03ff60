"""Whether tensor cores or a doubling inverse take a kernel past the rigorous bound that is derived for them.

As `bench_soundness`, in float32: our kernels with every matrix product computed by a bit-exact emulation of a
tensor core, its factors rounded to a shorter format, and a chunked delta rule that inverts by doubling.

Run: ``python tests/bench/bench_declared_soundness.py [--cells 1500] [--seed 0]`` from the repository root.
Prints one line of figures for each; no file is written.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "audit"))

import bench_soundness as bench
from tensor_cores import OnTensorCores

from verify.audit.case import Array, Case
from verify.audit.mechanism import named
from verify.audit.tolerance.predicted.doubling import doubling_delta_rule
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.tensor_core import core_named
from verify.audit.tolerance.worst_case.rigorous import derivation
from verify.numbers.formats import format_named

CORES = (
    ("volta", "float16"),
    ("ampere", "bfloat16"),
    ("hopper", "tf32"),
    ("hopper", "bfloat16"),
    ("ampere", "tf32"),
)
# Classes whose entries, logits or states are beyond the range of float16.
TOO_LARGE = ("fading", "logits-", "scale-")


def on_tensor_cores(case: Case, algorithm: Algorithm) -> tuple[Array, Array | None]:
    factors = format_named(algorithm.products)
    core = core_named(algorithm.accumulate, factors)
    assert core is not None
    with OnTensorCores(core, factors):
        return bench.ours(case, algorithm)


def by_doubling(case: Case, algorithm: Algorithm) -> tuple[Array, Array | None]:
    arrays = {name: torch.from_numpy(x).float() for name, x in case.arrays().items()}
    assert algorithm.chunk_size is not None
    with torch.no_grad():
        found = doubling_delta_rule(**arrays, scale=case.scale, chunk_size=algorithm.chunk_size)
    return found[0].double().numpy(), found[1].double().numpy()


RUNS = {"tensor cores": on_tensor_cores, "doubling": by_doubling}


def plans(what: str, seed: int) -> Iterator[bench.Plan]:
    number = 0
    while True:
        number += 1
        plan = bench.plan(seed, number, batch=20)
        kind, algorithm = named(plan.mechanism), plan.algorithm
        if what == "doubling":
            algorithm = dataclasses.replace(algorithm, inverse="doubling")
            fits = kind.erases and algorithm.form == "chunked"
        else:
            generation, products = CORES[number % len(CORES)]
            algorithm = dataclasses.replace(algorithm, products=products, accumulate=generation)
            fits = products != "float16" or not plan.kind.name.startswith(TOO_LARGE)
        if fits and plan.dtype == "float32" and derivation(kind, algorithm) is not None:
            yield dataclasses.replace(plan, algorithm=algorithm)


def figures(what: str, cells: int, seed: int) -> dict[str, Any]:
    """Of batches until that many cells are checked."""
    entries: list[dict[str, Any]] = []
    for plan in plans(what, seed):
        entries.append(bench.check(plan, RUNS[what], sigma=False))
        if sum(entry["cells"] for entry in entries) >= cells:
            break
    ratios = np.concatenate([entry["over_bound"] for entry in entries])
    counted = ("cells", "confirmed", "contradicted", "undecided", "unbounded")
    found: dict[str, Any] = {key: sum(entry[key] for entry in entries) for key in counted}
    return {**found, "median": float(np.median(ratios)), "largest": float(ratios.max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    broken = 0
    for what in RUNS:
        found = figures(what, options.cells, options.seed)
        broken += found["contradicted"] + found["undecided"]
        print(
            f"{what}: {found['cells']} cells; rows and states within the bound {found['confirmed']}, beyond"
            f" it {found['contradicted']}, left open {found['undecided']}; cells without a finite bound"
            f" {found['unbounded']}; error over bound: median {found['median']:.2g}, largest"
            f" {found['largest']:.2g}"
        )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
