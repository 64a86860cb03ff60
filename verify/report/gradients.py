"""The gradients of a kernel certificate by class and input, for its page and for the terminal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verify.model.verdict import Verdict, weakest

FIELDS = ("q", "k", "v", "g", "beta", "a", "b", "w", "initial_state")
"""In the order of a call; a sealed certificate has them sorted."""


@dataclass(frozen=True)
class GradientRow:
    """The gradients of one class of inputs.

    Args:
        name: of the class.
        cells: how many inputs were differentiated.
        verdict: the weakest of their verdicts.
        ratios: by input, the largest error over tolerance, as certificates write numbers; NaN above all.
        problem: of the first input that has one, else ``""``.
    """

    name: str
    cells: int
    verdict: str
    ratios: dict[str, float | str]
    problem: str


def rows(cells: Sequence[dict[str, Any]]) -> list[GradientRow]:
    """One row per class, in the order of the certificate."""
    names = dict.fromkeys(cell["class"] for cell in cells)
    return [_row(name, [cell for cell in cells if cell["class"] == name]) for name in names]


def fields(table: Sequence[GradientRow]) -> list[str]:
    """The inputs that any row has a gradient of."""
    return [field for field in FIELDS if any(field in row.ratios for row in table)]


def _row(name: str, cells: Sequence[dict[str, Any]]) -> GradientRow:
    found: dict[str, float | str] = {}
    for cell in cells:
        for field, figures in cell["inputs"].items():
            found[field] = max(found.get(field, 0.0), figures["worst_ratio"], key=_rank)
    problems = [cell["problem"]["message"] for cell in cells if cell["problem"] is not None]
    ratios = {field: found[field] for field in FIELDS if field in found}
    verdict = str(weakest(Verdict(cell["verdict"]) for cell in cells))
    return GradientRow(name, len(cells), verdict, ratios, problems[0] if problems else "")


def _rank(ratio: float | str) -> float:
    value = float(ratio)
    return math.inf if math.isnan(value) else value
