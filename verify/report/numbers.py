"""Numbers in claims: each with its formula, the bounds it was checked against and what was found."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from verify.report import terms

LONGEST = 14
"""Signs of a number that is written out; longer ones are rounded."""


@dataclass(frozen=True)
class Number:
    """A fraction as readers see it: ``sign`` is ≈ where ``text`` is shorter than ``exact``."""

    sign: str
    text: str
    exact: str


@dataclass(frozen=True)
class Bounded:
    """A formula at stated values between bounds; ``found`` is what the checkers say about it.

    ``low`` and ``high`` are exclusive, ``None`` where no bound was asked for.
    """

    label: str
    latex: str
    values: tuple[tuple[str, Number], ...]
    low: Number | None
    high: Number | None
    word: str
    found: str


@dataclass(frozen=True)
class Stated:
    """A claim's bounded numbers, by part: the part whose sentence states them, and the numbers."""

    claim: dict[str, Any]
    parts: tuple[tuple[dict[str, Any], tuple[Bounded, ...]], ...]


def stated(claim: dict[str, Any]) -> Stated:
    """What a claim's obligations of kind ``inequality`` bound; parts without any are left out."""
    found = (
        (part, tuple(_bounded(item) for item in part["evidence"] if item["kind"] == "inequality"))
        for part in claim["parts"]
    )
    return Stated(claim, tuple((part, rows) for part, rows in found if rows))


def _bounded(item: dict[str, Any]) -> Bounded:
    data = item["data"]
    return Bounded(
        item["label"],
        terms.latex(data["term"]),
        tuple((terms.name_latex(name), number(value)) for name, value in data["values"].items()),
        number(data["above"]) if "above" in data else None,
        number(data["below"]) if "below" in data else None,
        item["verdict"],
        "; ".join(check["detail"] for check in item["checks"]),
    )


def number(value: str) -> Number:
    """A fraction as a decimal where that is exact and short, as a fraction where that is short, else rounded.

    Raises:
        ValueError: it is not a fraction.
    """
    fraction = Fraction(value)
    exact, decimal = str(fraction), _decimal(fraction)
    short = [text for text in (decimal, exact) if text and len(text) <= LONGEST]
    if short:
        return Number("=", short[0], exact)
    return Number("≈", f"{Decimal(fraction.numerator) / fraction.denominator:.6g}", exact)


def _decimal(number: Fraction) -> str | None:
    """The finite decimal of a fraction, if it has one with few places."""
    for places in range(LONGEST):
        scaled = abs(number) * 10**places
        if scaled.denominator == 1:
            digits = str(scaled.numerator).rjust(places + 1, "0")
            whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
            return f"{'-' if number < 0 else ''}{whole}{'.' if rest else ''}{rest}"
    return None
