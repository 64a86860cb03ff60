"""Conventions as TOML: the presets that come with the tool, and files of the user's own."""

import tomllib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from verify.audit.mechanism import FORMS, MECHANISMS
from verify.model.errors import RequestError, unknown_name

INPUTS = ("q", "k", "v", "g", "beta", "scale", "initial_state")
_DTYPE_RULES = ("input", "float32", "float64", "at-least-float32")
_CHOICES = {
    "mechanism": tuple(MECHANISMS),
    "gate_space": ("ln", "log2", "linear"),
    "scale": ("argument", "fixed"),
    "token_layout": ("BTHD", "BHTD"),
    "state_layout": ("KV", "VK"),
    "form": FORMS,
    "gate_sums": ("running", "segment"),
    "corrections": ("factored", "solved"),
    "compute_dtype": _DTYPE_RULES,
    "output_dtype": _DTYPE_RULES,
    "state_dtype": _DTYPE_RULES,
    "gradients": ("none", "output", "output-and-state"),
    "returns": ("output-and-state", "output", "output-first"),
}


def presets() -> list[str]:
    """Names of the conventions that come with the tool."""
    files = resources.files("verify.audit").joinpath("conventions").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))


def read(name: str) -> dict[str, Any]:
    """The table of a preset or of a user's file, as TOML has it."""
    if name in presets():
        text = resources.files("verify.audit").joinpath("conventions", f"{name}.toml").read_text("utf-8")
    elif name.endswith(".toml"):
        try:
            text = Path(name).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(f"convention file {name!r} cannot be read: {error}") from error
    else:
        raise unknown_name("convention", name, [*presets(), "the path of a .toml file"])
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"convention file {name!r} is not TOML: {error}") from error


def checked(table: object, known: Iterable[str], where: str) -> dict[str, Any]:
    """The table's entries as arguments of `Convention`, each checked for name, type and value."""
    if not isinstance(table, dict):
        raise RequestError(f"convention {where}: expected a table, got {table!r}")
    entries: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            problem = unknown_name("field", key, known)
            raise RequestError(f"convention {where}: {problem}")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise RequestError(
                f"convention {where}: {key} is {value!r}, must be one of {', '.join(_CHOICES[key])}"
            )
        entries[key] = _typed(key, value, where)
    return entries


def _typed(key: str, value: Any, where: str) -> Any:
    """``value`` checked against the type of field ``key``."""
    if key == "arguments":
        valid = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        unknown = sorted(set(value) - set(INPUTS)) if valid else []
    elif key == "positional":
        valid = isinstance(value, list) and all(isinstance(v, str) for v in value)
        unknown = sorted(set(value) - set(INPUTS)) if valid else []
        value = tuple(value) if valid else value
    elif key == "extra":
        valid = isinstance(value, dict) and all(
            isinstance(v, bool | int | float | str) for v in value.values()
        )
        unknown = []
    elif key in ("length_multiple", "chunk_size"):
        valid, unknown = isinstance(value, int) and not isinstance(value, bool) and value >= 1, []
    else:
        valid, unknown = (
            isinstance(value, str if key in _CHOICES or key in ("summary", "cu_seqlens") else bool),
            [],
        )
    if unknown:
        raise unknown_name(f"field of {key} in convention {where}", unknown[0], INPUTS)
    if not valid:
        raise RequestError(f"convention {where}: {key} has a wrong value {value!r}")
    return value
