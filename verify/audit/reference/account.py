"""What a certificate says of its references: cell by cell, and together."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from verify.audit.reference.multiprecision import HIGH, LOW, MOST_DIGITS
from verify.audit.reference.results import Digits


class Judged(Protocol):
    """The part of a yardstick that is spoken of here."""

    @property
    def kind(self) -> str: ...

    @property
    def note(self) -> str: ...

    @property
    def digits(self) -> Mapping[str, Digits]: ...


ABOUT = {
    "float64": "float64, with a rigorous bound of its own error",
    "mpmath": f"mpmath at {LOW} and {HIGH} bits; digits that both agree on stand",
    "ball": "balls, which enclose the exact result",
    "exact": "exact rationals where every exponential is rational, balls elsewhere",
}
"""By the level asked for."""


def reference_entry(yardstick: Judged) -> dict[str, Any]:
    """Of one cell."""
    digits = {name: _entry(each) for name, each in yardstick.digits.items()}
    return {
        "reference": yardstick.kind,
        "reference_note": yardstick.note or None,
        "digits": digits or None,
    }


def account(
    asked: str, cells: Sequence[Mapping[str, Any]], gradients: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Of a certificate: the level asked for, how many cells each level judged, and the digits that stand.

    Args:
        asked: one of `levels.LEVELS`.
        cells: their entries; those that were not judged count for nothing.
        gradients: entries of those that were differentiated.
    """
    everything = [*cells, *gradients]
    used = Counter(entry["reference"] for entry in everything if entry.get("reference"))
    notes: dict[str, list[str]] = {}
    for note in (entry.get("reference_note") for entry in everything):
        if note:
            # What comes before the colon is the reason, what comes after it is about one cell.
            notes.setdefault(note.partition(":")[0], []).append(note)
    standing: dict[str, list[Mapping[str, float]]] = {}
    for entry in everything:
        for name, digits in (entry.get("digits") or {}).items():
            label = name if "output" in entry else f"gradient of {name}"
            standing.setdefault(label, []).append(digits)
    return {
        "asked": asked,
        "about": ABOUT[asked],
        "used": dict(sorted(used.items())),
        "notes": [{"cells": len(each), "note": each[0]} for each in notes.values()],
        "most_digits": int(10 * MOST_DIGITS) / 10 if standing else None,
        "digits": {name: _least(each) for name, each in standing.items()} or None,
    }


def _least(digits: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The least of what the cells say."""
    return {key: min(each[key] for each in digits) for key in ("fewest", "median")}


def _entry(digits: Digits) -> dict[str, float]:
    # Rounded down: fewer digits than stated would be wrong, more are not.
    return {name: int(10 * value) / 10 for name, value in vars(digits).items()}
