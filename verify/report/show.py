"""How JSON values are laid out: matrices as matrices, formulas as formulas, records as tables."""

from typing import Any

from verify.report.terms import is_term

Row = dict[str, Any]
MOST = 32
"""Rows, or entries of a row, that a page shows; the certificate has all of them."""


def first(items: list[Any]) -> list[Any]:
    """As many items as a page shows."""
    return items[:MOST]


def left_out(value: list[Any]) -> str:
    """What a page says about the items it leaves out; empty when it shows all."""
    widest = max((len(item) for item in value if isinstance(item, list)), default=0)
    if len(value) <= MOST and widest <= MOST:
        return ""
    size = f"{len(value)} × {widest}" if widest else f"{len(value)}"
    return f"shortened: {size} in all, the rest is in the certificate"


def shape(value: Any) -> str:
    """The layout of a value: formula, matrix, vector, rows, sizes, record, list, text, scalar, empty."""
    if is_term(value):
        return "formula"
    if isinstance(value, dict):
        return _record_shape(value)
    if isinstance(value, list):
        return _list_shape(value)
    if isinstance(value, str) and "\n" in value:
        return "text"
    return "scalar"


def _record_shape(record: Row) -> str:
    if not record:
        return "empty"
    return "sizes" if all(isinstance(entry, int | float) for entry in record.values()) else "record"


def _list_shape(items: list[Any]) -> str:
    if not items:
        return "empty"
    if all(_scalar(item) for item in items):
        return "vector"
    if all(isinstance(item, list) and item and all(_scalar(entry) for entry in item) for item in items):
        same = len({len(item) for item in items}) == 1
        return "matrix" if same and not any(is_term(item) for item in items) else "list"
    if all(isinstance(item, dict) and item.keys() == items[0].keys() for item in items):
        return "rows"
    return "list"


def _scalar(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float) and "\n" not in str(value))


def scalar(value: Any) -> str:
    """A scalar in words: floats to four digits, truth values as yes and no."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def number(value: Any) -> str:
    """A measured number to three digits; non-finite ones, which certificates hold as text, as signs."""
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "−∞", "nan": "NaN"}.get(value, value)
    return "–" if value is None else f"{value:.3g}"


def heat(item: Row) -> int:
    """Level of a class in the heat map: 0 (far below its tolerance) to 4 (just below), 5 (a fault)."""
    value = 0.0 if item["worst_ratio"] is None else float(item["worst_ratio"])
    if item["verdict"] == "refuted" or not value <= 1.0:
        return 5
    return sum(value > limit for limit in (0.03, 0.1, 0.3, 0.6))
