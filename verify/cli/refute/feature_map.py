"""``module:function`` and ``file.py:function``: the user's own feature map, imported."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from verify.model.errors import RequestError, unknown_name


def load(spec: str) -> Callable[[list[Any]], Any]:
    """The function that a specification names.

    Raises:
        RequestError: there is no such file, module or function, or importing it raises.
    """
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise RequestError(
            f"{spec!r} names no features; give a JSON or CSV file with a matrix, module:function or"
            " file.py:function"
        )
    module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    if not hasattr(module, name):
        public = [known for known, value in vars(module).items() if callable(value) and known[0] != "_"]
        raise unknown_name(f"function of {place}", name, public or ["none"])
    function = getattr(module, name)
    if not callable(function):
        raise RequestError(
            f"{spec} is a {type(function).__name__}; give a function from a key to its features"
        )
    return function  # type: ignore[no-any-return]


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise RequestError(f"{path} is not a Python file that exists")
    module = importlib.util.module_from_spec(spec)
    with _reported(str(path)):
        spec.loader.exec_module(module)
    return module


def _from_name(name: str) -> ModuleType:
    # The command's own folder leads sys.path, not the user's.
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _reported(name):
            return importlib.import_module(name)
    finally:
        sys.path.remove(str(Path.cwd()))


@contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as problem:
        raise RequestError(f"importing {what} raises {type(problem).__name__}: {problem}") from problem
