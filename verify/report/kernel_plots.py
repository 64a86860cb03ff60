"""Figures of a kernel certificate: error beside tolerance per token, and how much of it each class uses."""

import math
from typing import Any

from verify.report.plots import FAINT, FIRST, GROUND, INK, SECOND, Plot, draw, plain_log_labels

TOKENS = "tokens-"
"""What the names of the figures of single classes begin with; they come last."""


def figures(data: dict[str, Any]) -> list[Plot]:
    """The bars over all classes, then one figure per class from its worst cell."""
    plots = _bars(data["classes"])
    for item in data["classes"]:
        cell = worst_cell(data["cells"], item["name"])
        if cell is not None:
            plots.extend(_tokens(item["name"], cell))
    return plots


def number(value: Any) -> float:
    """A number of a certificate, which writes non-finite ones as text."""
    return float(value) if value is not None else math.nan


def worst_cell(cells: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    """The cell of a class that uses most of its tolerance, nan first; ``None`` where none has an output."""
    measured = [cell for cell in cells if cell["class"] == name and cell["output"] is not None]
    return max(measured, key=lambda cell: _rank(cell["output"]["worst_ratio"]), default=None)


def _rank(ratio: Any) -> float:
    value = number(ratio)
    return math.inf if math.isnan(value) else value


def _bars(classes: list[dict[str, Any]]) -> list[Plot]:
    """One bar per class; a ratio that is not finite fills the width, a ratio of zero has no length."""
    measured = [item for item in reversed(classes) if item["worst_ratio"] is not None]
    ratios = {item["name"]: _rank(item["worst_ratio"]) for item in measured}
    drawn = [ratio for ratio in ratios.values() if math.isfinite(ratio) and ratio > 0]
    low, high = min([*drawn, 1.0]) / 3, max([*drawn, 1.0]) * 10
    worst = max(ratios, key=lambda name: ratios[name], default=None)
    if worst is None:
        return []

    def paint(axes: Any) -> None:
        for place, ratio in enumerate(ratios.values()):
            end = min(max(ratio, low), high)
            axes.barh(place, end, color=FIRST if ratio <= 1 else SECOND, height=0.65)
            fits = end < high
            axes.annotate(
                f"{ratio:.3g}" if math.isfinite(ratio) else "not finite",
                (end if fits else low, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                color=INK if fits else GROUND,
                bbox={"facecolor": GROUND, "edgecolor": "none", "pad": 0.5} if fits else None,
            )
        axes.set_yticks(range(len(ratios)), [*ratios])
        axes.set_xscale("log")
        plain_log_labels(axes.xaxis)
        axes.set_xlim(low, high)
        axes.axvline(1.0, color=SECOND, linestyle="--")
        axes.set_xlabel("largest error / tolerance")
        axes.grid(visible=False, axis="y")

    silent = [item["name"] for item in classes if item["worst_ratio"] is None]
    note = f" Without any output: {', '.join(silent)}." if silent else ""
    caption = f"Largest error over tolerance per class of inputs; right of the dashed line is a fault.{note}"
    alt = f"Bar chart of {len(ratios)} classes; the largest ratio is {ratios[worst]:.3g}, for {worst}."
    return [draw("classes", caption, alt, paint, (7.2, 1.0 + 0.28 * len(ratios)))]


def _tokens(name: str, cell: dict[str, Any]) -> list[Plot]:
    per_token = cell["output"]["per_token"]
    error = [number(value) for value in per_token["error"]]
    tolerance = [number(value) for value in per_token["tolerance"]]
    positive = [value for value in (*error, *tolerance) if math.isfinite(value) and value > 0]
    if not positive:
        return []
    floor = min(positive) / 10
    zeros, lost = error.count(0.0), sum(not math.isfinite(value) for value in error)

    def paint(axes: Any) -> None:
        tokens = range(len(error))
        axes.plot(
            tokens,
            _raised(tolerance, floor),
            color=SECOND,
            linestyle="--",
            marker=".",
            markersize=3,
            label="tolerance",
        )
        axes.plot(tokens, _raised(error, floor), color=FIRST, marker=".", markersize=3, label="error")
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.set_xlim(-0.5, len(error) - 0.5)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("token")
        axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
        for first, last in _runs(error):
            axes.axvspan(first - 0.5, last + 0.5, color=FAINT, linewidth=0)

    notes = [f"{zeros} exact zeros lie on the bottom edge"] if zeros else []
    notes += [f"{lost} tokens are not finite (shaded)"] if lost else []
    shape = ", ".join(f"{axis}={size}" for axis, size in cell["shape"].items())
    caption = f"{name}, worst cell ({shape}, seed {cell['seed']})" + "".join(f"; {note}" for note in notes)
    alt = (
        f"Error and tolerance per token on a log scale for {name}: largest error "
        f"{cell['output']['max_abs_error']}, largest error over tolerance {cell['output']['worst_ratio']}."
    )
    return [draw(f"{TOKENS}{name}", caption, alt, paint)]


def _runs(values: list[float]) -> list[tuple[int, int]]:
    """First and last place of every run of values that are not finite."""
    lost = [place for place, value in enumerate(values) if not math.isfinite(value)]
    firsts = [place for place in lost if place - 1 not in lost]
    return list(zip(firsts, (place for place in lost if place + 1 not in lost), strict=True))


def _raised(values: list[float], floor: float) -> list[float]:
    return [max(value, floor) if math.isfinite(value) else math.nan for value in values]
