"""The page and the plot of a soundness campaign, from its batches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from soundness_distance import table

from verify.audit.tolerance.predicted.bounds import quantile
from verify.audit.tolerance.predicted.prediction import RUNS

FORMS = ("recurrent", "chunked", "tiled")


def _values(entries: Sequence[dict[str, Any]], key: str) -> np.ndarray:
    return np.asarray([x for entry in entries for x in entry[key] or []], dtype=float)


def _named(entries: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({entry["mechanism"] for entry in entries})


def _share(x: float) -> str:
    return f"{x:.2g}"


def page(entries: Sequence[dict[str, Any]], seed: int, distances: Sequence[dict[str, Any]] = ()) -> str:
    """The figures as a Markdown page; ``distances`` as `soundness_distance.distances` gives them."""
    cells = sum(entry["cells"] for entry in entries)
    counts = {key: sum(entry[key] for entry in entries) for key in ("confirmed", "contradicted", "undecided")}
    unbounded = sum(entry["unbounded"] for entry in entries)
    directed = _values(entries, "directed")
    sigma = _values(entries, "over_sigma")
    lines = [
        "# Soundness of the rigorous bound, and calibration of the predicted deviation",
        "",
        f"{cells} cells (one sequence and head each) in {len(entries)} random batches of mechanism, form,"
        f" chunk, input class, dtype and shape (T up to 40, K up to 8, V up to 5), seed {seed}. Every output"
        " row and final state of our kernels is compared with balls that enclose the exact one.",
        "",
        f"- rows and states shown to be within the bound: {counts['confirmed']}; beyond it:"
        f" **{counts['contradicted']}**; left open: {counts['undecided']}.",
        f"- cells for which no finite bound exists: {unbounded}.",
        f"- with errors drawn at random up to one unit of roundoff in every operation ({len(directed)} cells"
        f" in float32): beyond the bound **{int((directed > 1).sum())}**, at most"
        f" {_share(directed.max(initial=0))} of it.",
        "",
        "## Largest error over bound, per cell",
        "| dtype | form | cells | median | 90 % | largest |",
        "|---|---|---|---|---|---|",
    ]
    for dtype in ("float32", "bfloat16", "float64"):
        for form in FORMS:
            chosen = [e for e in entries if e["dtype"] == dtype and e["form"] == form]
            x = _values(chosen, "over_bound")
            if x.size:
                middle, high = (_share(float(y)) for y in np.quantile(x, [0.5, 0.9]))
                lines.append(f"| {dtype} | {form} | {x.size} | {middle} | {high} | {_share(x.max())} |")
    quantiles = np.quantile(sigma, [0.5, 0.9, 0.999, 1.0]) if sigma.size else np.zeros(4)
    middle, high, rare, most = (_share(float(x)) for x in quantiles)
    per = {name: sum(e["cells"] for e in entries if e["mechanism"] == name) for name in _named(entries)}
    lines += [
        "",
        "Cells: " + ", ".join(f"{name} {count}" for name, count in per.items()) + ".",
        "",
        "In bfloat16 the rounding of the stored output alone can come to the whole bound.",
        "",
        *(table(distances) if distances else ()),
        "## Error over predicted deviation, per output row",
        f"{sigma.size} rows: median {middle}, 90 % {high}, 99.9 % {rare}, largest {most}. The plot shows"
        f" their tail beside the one that the tolerances allow a row ({RUNS} runs of each kind).",
        "",
        "![calibration](calibration.png)",
        "",
        "Run again: `python tests/bench/bench_soundness.py` (resumes; a 200-cell slice runs with the tests).",
        "",
    ]
    return "\n".join(lines)


def plot(entries: Sequence[dict[str, Any]], path: Path) -> None:
    """Left: how errors lie below the bound. Right: the tail of error over predicted deviation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    bins = np.linspace(-8, 0.5, 86)
    for form in FORMS:
        for dtype, line in (("float32", "-"), ("bfloat16", ":")):
            x = _values([e for e in entries if e["form"] == form and e["dtype"] == dtype], "over_bound")
            if (x > 0).any():
                left.hist(
                    np.log10(x[x > 0]),
                    bins=bins,
                    density=True,
                    histtype="step",
                    linestyle=line,
                    label=f"{form}, {dtype}",
                )
    left.axvline(0, color="black", linewidth=1)
    left.set(xlabel="log10 of error / rigorous bound", ylabel="density of cells")
    left.legend(fontsize=8)
    sigma = np.sort(_values(entries, "over_sigma"))
    if sigma.size:
        right.step(sigma, 1 - np.arange(sigma.size) / sigma.size, label="observed")
        shares = np.logspace(-8, -0.1, 60)
        right.plot([quantile(float(p), RUNS) for p in shares], shares, label="assumed at most")
    right.set(yscale="log", xlabel="error / predicted deviation, per row", ylabel="share of rows beyond")
    right.legend(fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
