"""Exact numbers from the user's files: JSON or CSV, fractions as text, decimals read as they are written."""

import csv
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from verify.model.errors import RequestError
from verify.numbers.convert import to_fraction

Matrix = list[list[Fraction]]
LARGEST_EXPONENT = 3
"""Digits that the exponent of a decimal may have."""


def load(path: Path) -> Any:
    """The content of a ``.csv`` file (rows of text) or of a JSON file (decimals as exact fractions).

    Raises:
        RequestError: it does not exist, cannot be read, is empty, or is not JSON.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise RequestError(f"{path} cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise RequestError(f"{path} is not text; give JSON or CSV") from problem
    if not text.strip():
        raise RequestError(f"{path} is empty")
    if path.suffix == ".csv":
        return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    try:
        return json.loads(text, parse_float=_decimal, parse_constant=_not_finite)
    except (ValueError, RecursionError) as problem:
        raise RequestError(f"{path} is not JSON: {problem}") from problem


def _decimal(text: str) -> Fraction:
    """The exact value of a number in text; an exponent of many digits would fill the memory."""
    if len(re.sub(r".*[eE][+-]?0*", "", text)) > LARGEST_EXPONENT and re.search(r"[eE]", text):
        raise RequestError(f"{_shown(text)} has an exponent of more than {LARGEST_EXPONENT} digits")
    return to_fraction(text)


def _not_finite(word: str) -> NoReturn:
    raise RequestError(f"{word} is not a finite number; infinities and NaN have no exact value")


def vector(value: Any, what: str) -> list[Fraction]:
    """A non-empty list of exact numbers; ``what`` names it in errors."""
    if not isinstance(value, list) or not value:
        raise RequestError(f"{what} must be a non-empty list of numbers, not {_shown(value)}")
    return [number(item, what) for item in value]


def matrix(value: Any, what: str) -> Matrix:
    """A non-empty list of rows of one length; ``what`` names it in errors."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) for row in value):
        raise RequestError(f"{what} must be a non-empty list of rows, not {_shown(value)}")
    rows = [vector(row, f"row {place} of {what}") for place, row in enumerate(value, 1)]
    for place, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise RequestError(f"row {place} of {what} has {len(row)} entries, row 1 has {len(rows[0])}")
    return rows


def number(value: Any, what: str) -> Fraction:
    """One exact number: an integer, a decimal, or text such as ``"1/3"``."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | str):
        raise RequestError(f"{what} holds {_shown(value)}, which is not a number such as 3, 0.25 or '1/3'")
    try:
        return _decimal(value) if isinstance(value, str) else to_fraction(value)
    except RequestError as problem:
        raise RequestError(f"{what}: {problem}") from problem


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + " …"
