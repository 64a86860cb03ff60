"""Checks that plain numbers and words on others' rules in a kernel certificate follow from its cells."""

import math
from collections.abc import Iterable
from typing import Any


def faults(data: dict[str, Any]) -> list[str]:
    """The faults, as sentences; a certificate without these parts has none."""
    tensors = _tensors(data)
    return [*_plain(data.get("plain", {}), tensors), *_rules(data)]


def _tensors(data: dict[str, Any]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """By tensor, the class and the numbers of every input."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for cell in data["cells"]:
        for part in ("output", "state"):
            if cell[part] is not None:
                found.setdefault(part, []).append((cell["class"], _numbers(cell[part])))
    for cell in data.get("gradients", []):
        for field, figures in cell["inputs"].items():
            found.setdefault(f"gradient of {field}", []).append((cell["class"], _numbers(figures)))
    return found


def _numbers(figures: dict[str, Any]) -> dict[str, Any]:
    return {**figures, **figures.get("plain", {})}


def _plain(stated: dict[str, Any], tensors: dict[str, Any]) -> Iterable[str]:
    for tensor, row in stated.items():
        for name, worst in row.items():
            known = [(c, n[name]) for c, n in tensors.get(tensor, []) if n.get(name) is not None]
            largest = max((_size(value) for _, value in known), default=None)
            if _size(worst["value"]) != largest or (worst["class"], worst["value"]) not in known:
                yield f"plain: {name} of the {tensor} is {worst['value']}; the cells say otherwise"


def _rules(data: dict[str, Any]) -> Iterable[str]:
    entries = [(e["class"], e.get("rules", {})) for e in (*data["cells"], *data.get("gradients", []))]
    for rule in data.get("rules", []):
        judged = [(name, found[rule["name"]]) for name, found in entries if rule["name"] in found]
        failing = [name for name, passes in judged if not passes]
        follows = {
            "passes": not failing if judged else None,
            "inputs": len(judged),
            "failing": len(failing),
            "classes": list(dict.fromkeys(failing)),
        }
        if any(rule[name] != value for name, value in follows.items()):
            yield f"rules: what is said of {rule['name']} does not follow from the cells"


def _size(value: float | str) -> float:
    size = abs(float(value))
    return math.inf if math.isnan(size) else size
