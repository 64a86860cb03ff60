"""Finds the function under test, and says in one sentence why it cannot be found."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any


class CannotStart(Exception):
    """The target cannot be served; ``kind`` is "request" or "environment"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def describe(error: BaseException) -> str:
    """Type, text and place of an error in one line; for an empty text, the source line."""
    own = (os.path.dirname(__file__), os.path.dirname(importlib.__file__))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", *own))]
    text = " ".join(str(error).split())[:400] or (frames[-1].line if frames else "") or "no message"
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{place}"


def load_module(location: str, is_file: bool) -> types.ModuleType:
    """Import the module or file that holds the target."""
    try:
        if not is_file:
            return importlib.import_module(location)
        sys.path.insert(0, os.path.dirname(location))
        name = "_audited_" + os.path.splitext(os.path.basename(location))[0]
        spec = importlib.util.spec_from_file_location(name, location)
        if spec is None or spec.loader is None:
            raise CannotStart("request", f"{location} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    except CannotStart:
        raise
    except ModuleNotFoundError as error:
        if not is_file and error.name and (location + ".").startswith(error.name + "."):
            raise CannotStart("request", f"{sys.executable} has no module {error.name!r}") from None
        raise CannotStart("environment", f"importing {location} failed: {describe(error)}") from None
    except BaseException as error:
        raise CannotStart("environment", f"importing {location} failed: {describe(error)}") from None


def _hint(holder: Any, name: str) -> str:
    # __dict__, not dir(): asking a lazily loaded package for each of its names would import all of it
    names = sorted(n for n, v in getattr(holder, "__dict__", {}).items() if callable(v) and n[:2] != "__")
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"it has: {', '.join(names[:20])}" if names else "it has no functions"


def find(module: types.ModuleType, location: str, attribute: str) -> Callable[..., Any]:
    """Follow the dotted ``attribute`` from ``module`` to something callable."""
    found: Any = module
    so_far = location
    for part in attribute.split("."):
        try:
            found_next = getattr(found, part, None)
        except Exception as error:
            message = f"reading {part!r} of {so_far} failed: {describe(error)}"
            raise CannotStart("environment", message) from None
        if found_next is None:
            raise CannotStart("request", f"{so_far} has no {part!r}; {_hint(found, part)}")
        found = found_next
        so_far += ("." if ":" in so_far else ":") + part
    if not callable(found):
        raise CannotStart("request", f"{so_far} is a {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]
