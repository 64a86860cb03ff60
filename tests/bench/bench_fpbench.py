"""Writes docs/fpbench.md: our rigorous bounds of rounding errors beside the published ones.

Every bound is checked from below: by runs of the rounded program against balls, whose largest error must not
exceed it. Run: ``python tests/bench/bench_fpbench.py`` from the repository root; about two minutes.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from fpbench_programs import BENCHMARKS, TOOLS, Benchmark

from verify.numbers.formats import BFLOAT16, FLOAT32
from verify.numbers.roundoff import rows
from verify.numbers.roundoff.bound import ErrorBound, error_bound
from verify.numbers.roundoff.observed import observed_error
from verify.numbers.roundoff.softmax import SoftmaxRow, softmax_error

PAGE = Path(__file__).parents[2] / "docs" / "fpbench.md"
SEARCH: dict[str, Any] = {"function_ulps": "0.75", "tightness": 1.001, "most_boxes": 1_000_000}
KEYS = (2, 3, 4, 8, 16, 64, 256, 1024, 4096)
REACH = 160
"""Logits up to ±80."""
# Measured with FPTaylor 0.9.4, the better of config-b and config-c, key 1 the maximum, the other logits in
# [-80, 0], exp within half a unit in the last place, |v| <= 1; beyond 8 keys it was not run for this range.
FPTAYLOR_ROWS = {2: "2.1e-7", 3: "4.30e-7", 4: "1.40e-6", 8: "1.75e-5"}

TEXT = """\
# Rounding errors of straight-line programs and of softmax rows

Written by `tests/bench/bench_fpbench.py`. All figures are bounds of the absolute error.

## FPBench

`verify.numbers.roundoff.bound.error_bound` encloses the rounding error by the mean value theorem, and divides
the box of inputs until the bound is within 0.1 % of what its model of rounding attains somewhere, or a
million boxes are spent. It is rigorous: outward-rounded float64 intervals, no term left out, subnormals
covered. Its model is that every operation errs by at most half a unit in the last place of its result.

binary64, round to nearest. «reals»: inputs are any reals of the box, rounded first; so are those of the other
tools, as far as their figures tell. «floats»: inputs are values of the format, as VCFloat2 has them. «found»
is the largest error of {samples} runs on reals, against balls. Bold: no published bound for reals is smaller
than ours by more than 0.1 %. Times are seconds of one thread; FPTaylor's were 1 to 850.

{programs}

{notes}

Where ours is worse: {worse}.

FPTaylor's and VCFloat2's bounds come with proofs that HOL Light and Rocq check; ours do not.

## One row of softmax attention

o = Σ e^s_i v_i / Σ e^s_i in float32 with |v_i| ≤ 1, logits up to ±{half}, exp within one unit in the last
place, sums in any order: `verify.numbers.roundoff.softmax.softmax_error`, a closed form with its proof in the
docstring. «two passes» finds the maximum first; «online» has a running maximum and rescaled sums, by tiles of
64 keys and key by key. «found» is the largest error of two passes with sums from left to right, on random
rows and on one made so that its two sums drift apart; «ratio» is bound over found. Online runs on the same
rows, in their order and sorted, stay below their bounds too.

{rows}

A bound takes {milliseconds:.2f} ms, whatever n is. With weights stored in bfloat16 for the product with the
values, as flash kernels have them, it is {stored} at n = 4096.

FPTaylor's figures are for a weaker question: differences of logits are inputs, and exp errs by at most half a
unit in the last place. Then the closed form gives {weaker}; on 2 and 3 keys FPTaylor is better.
It took 40 to 58 s at n = 8. Divided into boxes, ours are {divided} on 2, 3 and 4 keys.
"""


def figure(x: float) -> str:
    """Four digits at most, without a zero in front of the exponent."""
    return f"{x:.4g}".replace("e-0", "e-")


def bounds(benchmark: Benchmark) -> tuple[ErrorBound, ErrorBound, float]:
    """For reals, for floats, and the seconds of the first."""
    start = time.perf_counter()
    reals = error_bound(benchmark.text, benchmark.box, rounded_inputs=True, **SEARCH)
    seconds = time.perf_counter() - start
    return reals, error_bound(benchmark.text, benchmark.box, **SEARCH), seconds


def program_rows(samples: int) -> tuple[list[str], list[str]]:
    """The table, and where a published bound is smaller."""
    head = ("program", "reals", "floats", "found", "s", *TOOLS)
    lines, worse = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"], []
    for benchmark in BENCHMARKS:
        reals, floats, seconds = bounds(benchmark)
        found, where = observed_error(
            benchmark.text, benchmark.box, rounded_inputs=True, near=reals.point, samples=samples
        )
        if found > reals.absolute:
            raise SystemExit(
                f"red: {benchmark.name} errs by {found:.4g} at {where}, beyond {reals.absolute:.4g}"
            )
        best = min((float(x) for t, x in benchmark.published.items() if t != "VCFloat2"), default=np.inf)
        good = reals.absolute <= best * 1.001
        if not good:
            worse.append(f"{benchmark.name}, {100 * (reals.absolute / best - 1):.1f} % above the best")
        ours = f"**{figure(reals.absolute)}**" if good else figure(reals.absolute)
        figures = [benchmark.published.get(tool, "·") for tool in TOOLS]
        cells = [benchmark.name, ours, figure(floats.absolute), figure(found), f"{seconds:.2f}", *figures]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines, worse


def largest_errors(keys: int, source: np.random.Generator) -> list[float]:
    """Of two passes, online by 64 and by 1, on random rows of several ranges and on the drifting one."""
    drawn = [rows.drawn(keys, reach, source) for reach in (2.0, 8.0, 32.0, float(REACH)) for _ in range(10)]
    worst = [0.0, 0.0, 0.0]
    for logits, values in [*drawn, rows.drifting(keys)]:
        runs = [(logits, rows.two_passes(logits, values), 0)]
        for tile, place in ((64, 1), (1, 2)):
            runs += [(x, rows.online(x, values, tile), place) for x in (logits, np.sort(logits))]
        for given, computed, place in runs:
            worst[place] = max(worst[place], rows.deviation(given, values, computed))
    return worst


def softmax_rows() -> tuple[list[str], float]:
    """The table, and the milliseconds of one bound."""
    head = ("keys", "two passes", "online, 64", "online, 1", "found", "ratio", "FPTaylor")
    lines, source = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"], np.random.default_rng(0)
    softmax_error(SoftmaxRow(2, REACH))
    start = time.perf_counter()
    for keys in KEYS:
        softmax_error(SoftmaxRow(keys, REACH))
    milliseconds = 1e3 * (time.perf_counter() - start) / len(KEYS)
    for keys in KEYS:
        rescaled = (0, -(-keys // 64) - 1, keys - 1)
        figures = [softmax_error(SoftmaxRow(keys, REACH, rescalings=r)) for r in rescaled]
        found = largest_errors(keys, source)
        if any(error > bound for error, bound in zip(found, figures, strict=True)):
            raise SystemExit(f"red: a row of {keys} keys errs by {found}, beyond {figures}")
        cells = [str(keys), *map(figure, figures), figure(found[0]), f"{figures[0] / found[0]:.2f}"]
        lines.append(f"| {' | '.join([*cells, FPTAYLOR_ROWS.get(keys, '·')])} |")
        print(lines[-1], flush=True)
    return lines, milliseconds


def divided(keys: int) -> float:
    """The bound of a row as a straight-line program, its largest logit 0 and the others in [-80, 0]."""
    others = range(1, keys)
    weights = "\n".join(f"e{i} = exp(x{i})" for i in others)
    read = " + ".join(["v0", *(f"e{i}*v{i}" for i in others)])
    total = " + ".join(["1", *(f"e{i}" for i in others)])
    box = {**{f"x{i}": (-80, 0) for i in others}, **{f"v{i}": (-1, 1) for i in range(keys)}}
    return error_bound(f"{weights}\n({read}) / ({total})", box, FLOAT32, function_ulps="0.5").absolute


def main() -> None:
    """Bound, check from below, write the page; nothing is written when a check fails."""
    samples = 16_000
    programs, worse = program_rows(samples)
    table, milliseconds = softmax_rows()
    stored = softmax_error(SoftmaxRow(4096, REACH, format=FLOAT32, stored=BFLOAT16))
    weaker = [softmax_error(SoftmaxRow(n, REACH, function_ulps="0.5")) for n in FPTAYLOR_ROWS]
    notes = "\n".join(f"- {b.name}: {b.note}." for b in BENCHMARKS if b.note)
    PAGE.write_text(
        TEXT.format(
            samples=f"{samples:,}".replace(",", " "),
            programs="\n".join(programs),
            notes=notes,
            worse="; ".join(worse) or "nowhere",
            half=REACH // 2,
            rows="\n".join(table),
            milliseconds=milliseconds,
            stored=figure(stored),
            weaker=", ".join(figure(x) for x in weaker),
            divided=", ".join(figure(divided(n)) for n in (2, 3, 4)),
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
