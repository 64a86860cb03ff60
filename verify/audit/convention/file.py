"""Conventions as TOML: the presets that come with the tool, and files of the user's own."""

import difflib
import tomllib
from collections.abc import Collection, Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from verify.audit.convention.forms import BETA_FORMS, GATE_FORMS, GATE_SPACES, NORMS
from verify.audit.mechanism import FORMS, MECHANISMS
from verify.model.errors import RequestError, unknown_name

INPUTS = ("q", "k", "v", "g", "beta", "a", "b", "w", "scale", "initial_state")
CONSTANTS = ("A_log", "A", "dt_bias", "lower_bound", "sink")
"""What `arguments` may name besides: the constants of a gate form, and the logit of a sink, [HV]."""
DTYPES = ("float64", "float32", "bfloat16", "float16")
_RULES = ("input", "at-least-float32", *DTYPES)
CHOICES = {
    "mechanism": tuple(MECHANISMS),
    "gate_form": GATE_FORMS,
    "gate_space": GATE_SPACES,
    "dt_bias_shape": ("flat", "heads"),
    "beta_form": BETA_FORMS,
    "qk_norm": NORMS,
    "scale": ("argument", "fixed"),
    "token_layout": ("BTHD", "BHTD", "THD"),
    "state_layout": ("KV", "VK"),
    "head_order": ("repeated", "tiled"),
    "form": FORMS,
    "gate_sums": ("running", "running-log2", "segment", "whole"),
    "corrections": ("factored", "solved"),
    "inverse": ("substitution", "doubling"),
    "products": ("compute", "tf32", "bfloat16", "float16"),
    "accumulate": ("nearest", "volta", "ampere", "hopper"),
    "gate_dtype": _RULES,
    "compute_dtype": _RULES,
    "storage_dtype": ("compute", *_RULES),
    "output_dtype": _RULES,
    "state_dtype": _RULES,
    "gradients": ("none", "output", "output-and-state"),
    "returns": ("output-and-state", "output", "output-first", "nothing"),
}
_WORDS = ("summary", "output_buffer", "state_buffer", "state_indices", "cu_seqlens", "chunk_argument")
_SWITCHES = (
    "grouped_heads",
    "gate_infinite",
    "batch_invariant",
    "state_in_place",
    "initial_state_required",
    "supports_empty",
)
_COUNTS = {"length_multiple": 1, "chunk_size": 1, "head_size": 0}
"""Whole numbers and the smallest of each."""
_NUMBERS = ("lower_bound", "qk_norm_eps")
_LISTS = {"positional": INPUTS, "overwrites": INPUTS, "optional": ("g", "beta"), "dtypes": DTYPES}


def presets() -> list[str]:
    """Names of the conventions that come with the tool."""
    files = resources.files("verify.audit.convention").joinpath("presets").iterdir()
    return sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))


def read(name: str) -> dict[str, Any]:
    """The table of a preset or of a user's file, as TOML has it."""
    if name in presets():
        text = (
            resources.files("verify.audit.convention").joinpath("presets", f"{name}.toml").read_text("utf-8")
        )
    elif name.endswith(".toml"):
        try:
            text = Path(name).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise RequestError(f"convention file {name!r} cannot be read: {why}") from error
    else:
        raise unknown_name("convention", name, [*presets(), "the path of a .toml file"])
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"convention file {name!r} is not TOML: {error}") from error


def checked(table: object, known: Collection[str], where: str) -> dict[str, Any]:
    """The table's entries as arguments of `Convention`, each checked for name, type and value."""
    if not isinstance(table, dict):
        raise RequestError(f"convention {where}: expected a table, got {table!r}")
    return {key: _value(key, value, known, where) for key, value in table.items()}


def _value(key: str, value: Any, known: Collection[str], where: str) -> Any:
    """One entry, as `Convention` holds it."""
    if key not in known:
        raise RequestError(f"convention {where}: {unknown_name('field', key, known)}")
    if key in CHOICES:
        if value in CHOICES[key]:
            return value
        raise _wrong(key, value, where, f"one of {', '.join(CHOICES[key])}", CHOICES[key])
    if key in _LISTS or key == "not_stated":
        return _names(key, value, _LISTS.get(key, known), where)
    if key == "chunk_sizes":
        if isinstance(value, list) and all(type(x) is int and x > 0 for x in value):
            return tuple(value)
        raise _wrong(key, value, where, "a list of whole numbers from 1, such as [32, 64]")
    if key == "arguments":
        _names(key, list(value) if isinstance(value, dict) else value, (*INPUTS, *CONSTANTS), where)
    valid, wanted = _typed(key, value)
    if not valid:
        raise _wrong(key, value, where, wanted)
    return float(value) if key in _NUMBERS else value


def _typed(key: str, value: Any) -> tuple[bool, str]:
    """Whether a value has the type of its field, and what that is, in words."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key in _WORDS:
        return isinstance(value, str), "a text in quotes"
    if key in _SWITCHES:
        return isinstance(value, bool), "true or false"
    if key in _NUMBERS:
        return number, "a number"
    if key in _COUNTS:
        least = _COUNTS[key]
        return number and isinstance(value, int) and value >= least, f"a whole number from {least}"
    entries = list(value.values()) if isinstance(value, dict) else [None]
    if key == "arguments":
        return all(isinstance(x, str) and x for x in entries), 'a table of texts, such as { q = "query" }'
    simple = all(isinstance(x, bool | int | float | str) for x in entries)
    return simple, "a table of numbers, texts, true or false"


def _names(key: str, value: Any, known: Collection[str], where: str) -> tuple[str, ...]:
    """A list of names, each one that is known."""
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise _wrong(key, value, where, 'a list of texts, such as ["q", "k"]')
    for name in value:
        if name not in known:
            raise unknown_name(f"field of {key} in convention {where}", name, known)
    return tuple(value)


def _wrong(key: str, value: Any, where: str, wanted: str, near: Iterable[str] = ()) -> RequestError:
    close = difflib.get_close_matches(str(value), list(near), n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return RequestError(f"convention {where}: {key} has a wrong value {value!r}, must be {wanted}{hint}")
