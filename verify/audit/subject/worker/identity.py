"""Says which code a name stands for: its file, what it dispatches to, whether that is Triton."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from .lookup import CannotStart

_NOT_FOLLOWED = frozenset({"torch", "triton", "numpy", "builtins"}) | sys.stdlib_module_names
MOST_FUNCTIONS_FOLLOWED = 5000


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None) or "?"
    return f"{module}:{getattr(function, '__qualname__', type(function).__name__)}"


def _cells(function: Any) -> Iterator[Any]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the cell is not filled yet
            continue


def substitutes(function: Any) -> list[Any]:
    """Functions a wrapper holds besides the one whose name and docstring it wears.

    ``functools.wraps`` leaves that one in ``__wrapped__``; a closure over another function means
    that calls may go there instead.
    """
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is None:
        return []
    own = (wrapped, function)
    return [c for c in _cells(function) if isinstance(c, types.FunctionType) and not any(c is o for o in own)]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def referred(thing: Any) -> Iterator[Any]:
    """What the code of a function or the body of a class refers to by global name or closure."""
    if isinstance(thing, functools.partial):
        yield thing.func
    elif isinstance(thing, (staticmethod, classmethod, types.MethodType)):
        yield thing.__func__
    elif type(thing).__name__ == "CustomOpDef":
        yield getattr(thing, "_init_fn", None)
    if not isinstance(thing, (type, types.FunctionType)) or thing.__module__.split(".")[0] in _NOT_FOLLOWED:
        return
    if isinstance(thing, type):
        yield from vars(thing).values()
        return
    yield from _cells(thing)
    yield from (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values())
    for code in _codes(thing.__code__):
        if "ops" in code.co_names:
            # An operator registered with torch is called by its name there.
            yield from (x for x in thing.__globals__.values() if type(x).__name__ == "CustomOpDef")
        for name in code.co_names:
            value = thing.__globals__.get(name)
            yield value
            if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] not in _NOT_FOLLOWED:
                yield from (vars(value).get(n) for n in code.co_names)


def reaches_triton(function: Any) -> bool:
    """Whether the function's code, followed through the functions it names, launches a Triton kernel."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting and len(seen) < MOST_FUNCTIONS_FOLLOWED:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if type(thing).__module__.split(".")[0] == "triton":
            return True
        waiting.extend(referred(thing))
    return False


def _source_file(function: Any) -> str | None:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    return code.co_filename if code is not None and os.path.isfile(code.co_filename) else None


def identify(
    config: dict[str, Any], module: types.ModuleType, function: Callable[..., Any]
) -> dict[str, Any]:
    """Everything the certificate says about which code runs, and where."""
    import torch

    others = substitutes(function)
    source = _source_file(others[0] if others else function)
    digest = None
    if source is not None:
        with open(source, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    package = sys.modules.get(module.__name__.split(".")[0])
    triton = reaches_triton(function)
    interpreted = triton and os.environ.get("TRITON_INTERPRET") == "1"
    gpu = torch.cuda.is_available()
    home = getattr(function, "__module__", module.__name__)
    return {
        "requested": config["requested"],
        "module": config["location"] if config["is_file"] else home,
        "qualname": getattr(function, "__qualname__", config["attribute"]),
        "is_wrapper": hasattr(function, "__wrapped__"),
        "dispatches_to": ", ".join(map(_name, others)) or None,
        "triton": triton,
        "triton_interpreted": interpreted,
        "source_file": source,
        "source_sha256": digest,
        "package_version": getattr(package, "__version__", None),
        "device": config["device"] or ("cuda" if triton and gpu and not interpreted else "cpu"),
        "device_name": torch.cuda.get_device_name() if gpu else None,
        "threads": torch.get_num_threads(),
        "python": sys.version.split()[0],
        "python_executable": sys.executable,
        "torch": torch.__version__,
    }


def refuse_triton_without_gpu(identity: dict[str, Any], function: Callable[..., Any]) -> None:
    """Say in one sentence that a Triton kernel has nowhere to run, and what to ask for instead."""
    if not identity["triton"] or identity["triton_interpreted"] or identity["device"] != "cpu":
        return
    implementation = identity["dispatches_to"]
    what = f"it runs {implementation}, a Triton kernel," if implementation else "it is a Triton kernel"
    wrapped = getattr(function, "__wrapped__", None)
    instead = "run this on a machine with a GPU"
    if wrapped is not None and not reaches_triton(wrapped):
        instead = f"ask for {identity['requested']}.__wrapped__ to certify the torch code"
    raise CannotStart("environment", f"{what} and {sys.executable} sees no GPU; {instead}")
