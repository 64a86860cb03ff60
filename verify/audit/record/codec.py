"""Values of a certification as text, and back again bit for bit: plain data, arrays, dataclasses, enums."""

import base64
import dataclasses
import enum
import importlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PACKAGE = "verify."
"""Only classes from here are made again: a journal is data, not code."""


def encode(value: Any) -> str:
    """One line of JSON.

    Raises:
        TypeError: some part is of a type that has no text.
    """
    arrays: list[NDArray[Any]] = []
    data = _encoded(value, arrays)
    return json.dumps([data, [_packed(x) for x in arrays]], separators=(",", ":"))


def decode(text: str) -> Any:
    """The value: tuples as tuples, every array C-contiguous, numpy's scalars as Python's.

    Raises:
        ValueError: the text was not made by `encode`.
    """
    data, packed = json.loads(text)
    return _decoded(data, [_unpacked(x) for x in packed])


def _encoded(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, enum.Enum):
        return {"enum": _name(type(value)), "value": value.value}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        place = next((i for i, x in enumerate(arrays) if x is value), len(arrays))
        arrays += [value] if place == len(arrays) else []
        return {"array": place}
    if isinstance(value, list):
        return [_encoded(x, arrays) for x in value]
    if isinstance(value, tuple):
        return {"tuple": [_encoded(x, arrays) for x in value]}
    if isinstance(value, Mapping):
        return {"dict": [[name, _encoded(x, arrays)] for name, x in value.items()]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _encoded(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
        return {"class": _name(type(value)), "fields": fields}
    raise TypeError(f"a {type(value).__name__} has no text")


def _decoded(data: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(data, list):
        return [_decoded(x, arrays) for x in data]
    if not isinstance(data, dict):
        return data
    if "enum" in data:
        return _class(data["enum"])(data["value"])
    if "array" in data:
        return arrays[data["array"]]
    if "tuple" in data:
        return tuple(_decoded(x, arrays) for x in data["tuple"])
    if "dict" in data:
        return {name: _decoded(x, arrays) for name, x in data["dict"]}
    return _class(data["class"])(**{name: _decoded(x, arrays) for name, x in data["fields"].items()})


def _packed(array: NDArray[Any]) -> list[Any]:
    """Type, shape and bytes; float64 that float32 holds exactly, as most results are, takes half the room."""
    stored = array
    if array.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = array.astype(np.float32)
        if np.array_equal(narrow.astype(np.float64), array, equal_nan=True):
            stored = narrow
    raw = zlib.compress(stored.tobytes(), level=1)
    return [array.dtype.str, stored.dtype.str, list(array.shape), base64.b64encode(raw).decode()]


def _unpacked(packed: list[Any]) -> NDArray[Any]:
    wanted, stored, shape, text = packed
    raw = zlib.decompress(base64.b64decode(text))
    return np.frombuffer(raw, dtype=stored).reshape(shape).astype(wanted)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{name!r} is no class of this package")
    found = getattr(importlib.import_module(module), attribute)
    if not dataclasses.is_dataclass(found) and not issubclass(found, enum.Enum):
        raise ValueError(f"{name!r} is no dataclass and no enumeration")
    return found
