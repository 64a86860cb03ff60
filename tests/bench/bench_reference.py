"""The float64 reference with its rigorous bound beside our recurrent float32 kernels.

B1 H4, K = V = 128, threads as OMP_NUM_THREADS says. No ratio is reported unless balls of 128 bits confirm the
reference and its bound on the first tokens of the very input that is timed. Runs are interleaved and ratios
taken pair by pair, because the machine may be shared; the median ratio and its quartiles are printed. Exits
with 1 where a median is above 10.
Run: ``python tests/bench/bench_reference.py [tokens]`` from the repository root; default 4096 tokens.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from verify.audit.case import Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import kernel
from verify.audit.reference.confirm import confirm
from verify.audit.reference.results import float64_reference

HEADS, WIDTH, PAIRS, CONFIRMED = 4, 128, 5, 24
MOST = 10
MECHANISMS = ("kda", "gdn", "delta", "linear", "mamba2", "gdn2", "dplr")


def draw(mechanism: str, tokens: int) -> Case:
    """A case of the first class, in float32."""
    shape = Shape(B=1, T=tokens, H=HEADS, HV=HEADS, K=WIDTH, V=WIDTH)
    return draw_case(REAL_CLASSES[0], mechanism, shape, dtype="float32", seed=0, with_state=True)


def check(case: Case) -> None:
    """Stop unless balls confirm the first tokens, which are computed alike in the whole and alone."""
    first = case.slice(0, CONFIRMED, case.initial_state)
    reference = float64_reference(first)
    found = confirm(first, reference, heads=[(0, 1)])
    if not found.holds:
        raise SystemExit(f"red: {case.mechanism}: {found}")
    whole = float64_reference(case)
    for part, other in ((whole.output, reference.output), (whole.output_error, reference.output_error)):
        if not np.array_equal(part[:, :CONFIRMED], other):
            raise SystemExit(f"red: {case.mechanism}: a token depends on what comes after it")
    worst = f"errors of at most {found.worst:.2g} of their bounds"
    print(f"{case.mechanism:<8} balls confirm {found.confirmed} rows, {worst}")


def run(case: Case) -> Callable[[], object]:
    """Our recurrent kernel on the same input."""
    inputs = {name: torch.tensor(x, dtype=torch.float32) for name, x in case.arrays().items()}
    recurrent = kernel(case.mechanism, "recurrent")
    return lambda: recurrent(**inputs, scale=case.scale, output_final_state=True)


def compare(case: Case) -> float:
    """Print both times and the ratio reference / kernel; returns its median."""
    times = []
    for _ in range(PAIRS + 1):
        pair = []
        for timed in (lambda: float64_reference(case), run(case)):
            start = time.perf_counter()
            timed()
            pair.append(time.perf_counter() - start)
        times.append(pair)
    low, middle, high = statistics.quantiles([ours / theirs for ours, theirs in times[1:]], n=4)
    ours, theirs = (1e3 * min(column) for column in zip(*times[1:], strict=True))
    print(f"{case.mechanism:<8} reference {ours:7.0f} ms   recurrent kernel {theirs:7.0f} ms", end="   ")
    print(f"ratio {middle:5.2f} ({low:.2f} to {high:.2f})", flush=True)
    return middle


def main() -> None:
    """Check, then time, every mechanism with a state."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    cases = [draw(mechanism, tokens) for mechanism in MECHANISMS]
    for case in cases:
        check(case)
    print(f"B1 T{tokens} H{HEADS} K=V={WIDTH}, {torch.get_num_threads()} threads")
    if max(map(compare, cases)) > MOST:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
