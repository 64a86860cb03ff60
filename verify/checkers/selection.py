"""A set of tokens kept by attention, and the softmax mass of the tokens it drops, enclosed by intervals.

Data: ``scores`` (n rationals, over temperature), ``kept`` (indices from 0); optionally ``selector`` (n
rationals by which the kept tokens were chosen: none of them below a dropped one) with ``within`` and
``shift`` (each selector score is within that of its score plus the shift); bounds ``dropped_above``,
``dropped_below`` on the dropped mass and ``best_above``, ``best_below`` on that of the best set of the same
size. At least one bound.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import Interval, exp
from verify.checkers.reading import Vector, Wrong, natural, vector, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "selection checker"
KINDS = frozenset({"selection"})
BOUNDS = ("dropped_above", "dropped_below", "best_above", "best_below")


def judge(obligation: Obligation) -> Check:
    """``proved`` when the kept set is a choice of the selector and the masses are on the stated sides."""
    return word(NAME, obligation, _selection)


def _selection(data: Mapping[str, Any]) -> str:
    scores = vector(data["scores"])
    kept = [natural(index) for index in data["kept"]]
    if len(set(kept)) != len(kept) or not kept or max(kept) >= len(scores):
        raise Wrong(f"{kept} are not different indices of {len(scores)} tokens")
    if "selector" in data:
        _chosen(data, scores, kept)
    elif "within" in data or "shift" in data:
        raise IllFormed("a distance is stated, but no selector")
    if not any(name in data for name in BOUNDS):
        raise IllFormed("no bound is stated")
    best = sorted(range(len(scores)), key=lambda index: scores[index], reverse=True)[: len(kept)]
    masses = {"dropped": _dropped(scores, kept), "best": _dropped(scores, best)}
    for name in BOUNDS:
        if name in data:
            which, side = name.split("_")
            _on_side(which, side, masses[which], rational(data[name]))
    lost = f"dropped mass {masses['dropped']}, at best {masses['best']}"
    return f"{len(kept)} of {len(scores)} tokens kept; {lost}"


def _chosen(data: Mapping[str, Any], scores: Vector, kept: Sequence[int]) -> None:
    selector = vector(data["selector"])
    if len(selector) != len(scores):
        raise Wrong(f"{len(selector)} selector scores for {len(scores)} tokens")
    lowest = min(selector[index] for index in kept)
    if any(selector[index] > lowest for index in range(len(scores)) if index not in kept):
        raise Wrong("the selector scores a dropped token above a kept one")
    if "within" in data or "shift" in data:
        shift, within = rational(data["shift"]), rational(data["within"])
        far = max(abs(one - true - shift) for one, true in zip(selector, scores, strict=True))
        if far > within:
            raise Wrong(f"the selector is {far} away from the scores, not within {within}")


def _dropped(scores: Vector, kept: Sequence[int]) -> Interval:
    top = max(scores)
    weights = [exp(score - top) for score in scores]
    lost = sum((weights[index] for index in range(len(scores)) if index not in kept), Interval.point(0))
    return lost / sum(weights[1:], weights[0])


def _on_side(which: str, side: str, mass: Interval, bound: Fraction) -> None:
    holds = mass.low > bound if side == "above" else mass.high < bound
    if not holds:
        raise Wrong(f"the dropped mass ({which}) is in {mass}, not certainly {side} {bound}")
