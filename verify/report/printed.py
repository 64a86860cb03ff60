"""Numbers as the articles print them, beside the bounds that were proved, and whether the two agree."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.report.numbers import Number, number


@dataclass(frozen=True)
class Printed:
    """A number as an article prints it, beside what was proved.

    Attributes:
        label: what number it is.
        printed: as printed; empty where the stored copy of the article has lost it.
        low, high: the number lies between them, strictly unless they are equal; ``None`` without a bound.
        found: what the checkers say.
        word: ``agrees``, ``differs``, ``open`` (the bounds do not decide) or ``lost``.
    """

    label: str
    printed: str
    low: Number | None
    high: Number | None
    found: str
    word: str


def printed(claim: dict[str, Any]) -> tuple[Printed, ...]:
    """The printed numbers that a claim's obligations give, each once.

    Raises:
        ValueError: a printed number cannot be read.
    """
    items = [item for part in claim["parts"] for item in part["evidence"] if "printed" in item["data"]]
    return tuple(dict.fromkeys(row for item in items for row in _compared(item)))


def _compared(item: dict[str, Any]) -> list[Printed]:
    data, found = item["data"], "; ".join(check["detail"] for check in item["checks"])
    if item["kind"] == "inequality":
        spans = [(item["label"], data.get("above"), data.get("below"))]
    elif "output" in data:
        names = (f"{item['label']}: coefficient {place}" for place in range(1, len(data["output"]) + 1))
        spans = [(name, value, value) for name, value in zip(names, data["output"], strict=True)]
    else:
        spans = [(item["label"], None, None)]
    return [
        Printed(
            label, data["printed"], _optional(low), _optional(high), found, _word(data["printed"], low, high)
        )
        for label, low, high in spans
    ]


def _optional(value: str | None) -> Number | None:
    return None if value is None else number(value)


def _word(text: str, low: str | None, high: str | None) -> str:
    """How proved bounds stand to what a printed number can stand for."""
    if not text:
        return "lost"
    least, most = meaning(text)
    above, below = (None if end is None else Fraction(end) for end in (low, high))
    if above is not None and above == below:
        fits = (least is None or above >= least) and (most is None or above <= most)
        return "agrees" if fits else "differs"
    outside = (above is not None and most is not None and above >= most) or (
        below is not None and least is not None and below <= least
    )
    if outside:
        return "differs"
    inside = (least is None or (above is not None and above >= least)) and (
        most is None or (below is not None and below <= most)
    )
    return "agrees" if inside else "open"


def meaning(text: str) -> tuple[Fraction | None, Fraction | None]:
    """The numbers that a printed one can stand for: least and most, ``None`` without an end.

    ``0.817…`` is cut off after its last digit; ``≈ 6.2`` may be one unit of its last digit off, ``0.577``
    half a unit; ``< 0.0001`` and ``≤ 4.606`` are bounds; ``0.577²`` is the square of what ``0.577`` stands
    for.

    Raises:
        ValueError: it is none of these.
    """
    found = re.fullmatch(r"(?:([<≤≈]) )?(-?\d+(?:\.(\d+))?)(…|²)?", text)
    if found is None:
        raise ValueError(f"the printed number {text!r} cannot be read")
    sign, digits, places, ending = found.groups()
    value, unit = Fraction(digits), Fraction(1, 10 ** len(places or ""))
    if sign in ("<", "≤"):
        return None, value
    if ending == "…":
        return (value, value + unit) if value >= 0 else (value - unit, value)
    reach = unit if sign == "≈" else unit / 2
    ends = value - reach, value + reach
    return (ends[0] ** 2, ends[1] ** 2) if ending == "²" else ends
