"""Questions about tensors too large to make: shapes on meta tensors, and the source of Triton kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .identity import MOST_FUNCTIONS_FOLLOWED, referred
from .lookup import describe


def on_meta(
    function: Callable[..., Any], request: dict[str, Any], unpack: Callable[[Any, str], dict[str, Any]]
) -> dict[str, Any]:
    """Call the target with tensors that have sizes but no memory; the shapes that come back, by name."""
    import torch

    tensors = {
        header["name"]: torch.empty(header["shape"], dtype=getattr(torch, header["dtype"]), device="meta")
        for header in request["tensors"]
    }
    keywords = dict(request["keywords"])
    positional = [tensors.pop(name) for name in request["positional"]]
    try:
        # What the target makes without naming a device has no memory either.
        with torch.no_grad(), torch.device("meta"):
            returned = unpack(function(*positional, **keywords, **tensors), request["returns"])
    except Exception as error:
        return {"message": describe(error), "shapes": None}
    return {"message": "", "shapes": {name: list(tensor.shape) for name, tensor in returned.items()}}


def triton_sources(function: Callable[..., Any]) -> list[dict[str, Any]]:
    """Every Triton kernel and device function that the target's code reaches: name, file, line and text."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    found = {}
    while waiting and len(seen) < MOST_FUNCTIONS_FOLLOWED:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if type(thing).__module__.split(".")[0] == "triton":
            # An autotuner or interpreter holds the kernel, which holds the function.
            thing = getattr(thing, "fn", None)
            if type(thing).__module__.split(".")[0] != "triton" and inspect.isfunction(thing):
                lines, first = inspect.getsourcelines(thing)
                name, file = thing.__name__, inspect.getsourcefile(thing)
                found[file, first] = {"name": name, "file": file, "line": first, "text": "".join(lines)}
            waiting.append(thing)
        waiting.extend(referred(thing))
    return list(found.values())
