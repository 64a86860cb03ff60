"""Figure of what attention layers read per decoded token, from the runs that were counted."""

from typing import Any

from verify.report.figure_data import evidence
from verify.report.plots import ABOVE, FIRST, INK, SECOND, Plot, draw, plain_log_labels

LINES = (FIRST, "-"), (SECOND, "-"), (INK, "-"), (FIRST, "--"), (SECOND, "--"), (INK, "--")
"""Colour and line of each curve; more curves than these are not drawn."""


def reads(certificate: dict[str, Any]) -> list[Plot]:
    """Numbers read for one decoded token over the history, each kind of layer a line."""
    curves = [
        (item["label"].partition(":")[0], _points(item["data"]["runs"]))
        for item in evidence(certificate)
        if item["kind"] == "access-count" and _single(item["data"]["runs"])
    ]
    shown = curves[: len(LINES)]
    if not shown:
        return []

    def paint(axes: Any) -> None:
        for (name, points), (colour, line) in zip(shown, LINES, strict=False):
            axes.plot(*zip(*points, strict=True), line, marker="o", markersize=3, color=colour, label=name)
        axes.loglog()
        plain_log_labels(axes.xaxis, "g")
        plain_log_labels(axes.yaxis, "g")
        axes.set_xlabel("history $T$")
        axes.set_ylabel("numbers read per token")
        axes.legend(ncols=3, **ABOVE)

    caption = (
        "Numbers read for one decoded token, as obligations of kind access-count counted them for one small"
        " layer of each kind."
    )
    last = "; ".join(f"{name}: {points[-1][1]:g} at {points[-1][0]:g}" for name, points in shown)
    return [draw("reads", caption, f"Numbers read per token: {last}.", paint, (6.4, 4.0))]


def _single(runs: list[dict[str, Any]]) -> bool:
    """Whether every run decodes one token of one sequence, at more than one history."""
    return len(runs) > 1 and all(
        run["generated"] == run["draft"] == 1 and not run["branches"] for run in runs
    )


def _points(runs: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(run["prompt"] + 1, run["read"]) for run in runs]
