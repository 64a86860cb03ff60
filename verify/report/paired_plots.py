"""The figure of paired comparisons: shares of draws with the intervals that the checker found."""

import re
from dataclasses import dataclass
from typing import Any

from verify.report.figure_data import evidence, number
from verify.report.plots import FAINT, FIRST, INK, SECOND, Plot, draw

SHARE = re.compile(r"(\S+) against (\S+): closer in (\S+) ± (\S+) of the draws")
MARKERS = ((FIRST, "o"), (SECOND, "s"), (INK, "D"))


@dataclass(frozen=True)
class Share:
    """In which share of the draws the first method was closer, with half the width of its interval."""

    methods: tuple[str, str]
    deviation: float
    history: str
    middle: float
    half: float


def shares(certificate: dict[str, Any]) -> list[Plot]:
    """One row per pair of methods and logit deviation, one mark per kind of history."""
    found = list(dict.fromkeys(share for item in evidence(certificate) for share in _read(item)))
    histories = list(dict.fromkeys(share.history for share in found))
    pairs = list(dict.fromkeys(share.methods for share in found))
    rows = sorted({(pairs.index(share.methods), share.deviation) for share in found}, reverse=True)
    if not rows or len(histories) > len(MARKERS):
        return []

    def paint(axes: Any) -> None:
        axes.axvline(0.5, color=INK, linestyle="--", linewidth=1)
        for history, (colour, marker) in zip(histories, MARKERS, strict=False):
            here = [share for share in found if share.history == history]
            shift = 0.25 * (len(histories) - 1 - 2 * histories.index(history)) / max(len(histories) - 1, 1)
            axes.errorbar(
                [share.middle for share in here],
                [rows.index((pairs.index(share.methods), share.deviation)) + shift for share in here],
                xerr=[share.half for share in here],
                fmt=marker,
                color=colour,
                markersize=4,
                elinewidth=1,
                label=history,
            )
        names = [f"{pairs[pair][0]} against {pairs[pair][1]}, {deviation:g}" for pair, deviation in rows]
        axes.set_yticks(range(len(rows)), names)
        for place in range(1, len(rows)):
            if rows[place][0] != rows[place - 1][0]:
                axes.axhline(place - 0.5, color=FAINT, linewidth=1)
        axes.grid(visible=False, axis="y")
        axes.set_xlim(-0.1, 1.1)
        axes.set_xlabel("share of draws in which the first method is closer to softmax")
        axes.legend(ncols=len(histories), loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)

    caption = (
        "Errors on shared random histories compared in pairs, by methods and logit deviation: shares and"
        " intervals as the checker of the obligations of kind paired-errors found them. mean: running mean;"
        " full: all weights to first order; self: only the self weight; key, least-squares: its delta rule"
        " with that substitute for the query."
    )
    clear = sum(abs(share.middle - 0.5) > share.half for share in found)
    alt = f"{len(found)} shares with intervals; {clear} of the intervals leave one half out."
    return [draw("shares", caption, alt, paint, (7.2, 1.2 + 0.36 * len(rows)))]


def _read(item: dict[str, Any]) -> list[Share]:
    if item["kind"] != "paired-errors":
        return []
    deviation, history = number(item["data"]["deviation"]), item["data"]["history"]
    return [
        Share((first, second), deviation, history, float(middle), float(half))
        for check in item["checks"]
        for first, second, middle, half in SHARE.findall(check["detail"])
    ]
