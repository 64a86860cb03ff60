"""The worst of the plain numbers over all inputs, tensor by tensor."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

_OF_TENSOR = ("max_abs_error", "rms_ratio", "nonfinite")
_PLAIN = (
    "max_rel",
    "max_ulp",
    "median_ulp",
    "at_zero",
    "rms_token",
    "rms_block",
    "bias",
    "bias_share",
    "outward_share",
)


def worst(
    entries: Sequence[dict[str, Any]], gradients: Sequence[dict[str, Any]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """By tensor (``"output"``, ``"state"``, ``"gradient of q"`` ...) and number: the worst value, its class.

    The worst is the largest in size; of numbers with a sign, that one with its sign.

    Args:
        entries: the certificate's cells.
        gradients: its differentiated cells.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for tensor, name, figures in _tensors(entries, gradients):
        row = found.setdefault(tensor, {})
        values = {n: figures[n] for n in _OF_TENSOR} | {n: figures["plain"][n] for n in _PLAIN}
        for number, value in values.items():
            if value is not None and (number not in row or _size(value) > _size(row[number]["value"])):
                row[number] = {"value": value, "class": name}
    return found


def _tensors(
    entries: Sequence[dict[str, Any]], gradients: Sequence[dict[str, Any]]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for entry in entries:
        parts = ((part, entry[part]) for part in ("output", "state"))
        yield from ((part, entry["class"], figures) for part, figures in parts if figures is not None)
    for entry in gradients:
        named = entry["inputs"].items()
        yield from ((f"gradient of {field}", entry["class"], figures) for field, figures in named)


def _size(value: float | str) -> float:
    size = abs(float(value))
    return math.inf if math.isnan(size) else size
