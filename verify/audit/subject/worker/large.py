"""Questions about tensors too large to make: shapes on meta tensors, and the source of Triton kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .identity import MOST_FUNCTIONS_FOLLOWED, referred
from .lookup import describe

Unpack = Callable[[Any, str], dict[str, Any]]


def on_meta(function: Callable[..., Any], request: dict[str, Any], unpack: Unpack) -> dict[str, Any]:
    """Call the target with tensors that have sizes but no memory; the shapes that come back, by name."""
    import torch

    try:
        # What the target makes without naming a device has no memory either.
        with torch.no_grad(), torch.device("meta"):
            returned, _ = _called(function, request, unpack, differentiate=False)
    except Exception as error:
        return {"message": describe(error), "shapes": None}
    return {"message": "", "shapes": {name: list(tensor.shape) for name, tensor in returned.items()}}


def launches(function: Callable[..., Any], request: dict[str, Any], unpack: Unpack) -> dict[str, Any]:
    """Such a call, differentiated too where that is asked for: the Triton kernels launched and their source.

    What went wrong, forward or backward, is in ``message`` and ``gradients_message``. Launches of the forward
    pass that is differentiated are ``repeated``.
    """
    import torch

    from .launches import recording

    answer = {"message": "", "gradients_message": ""}
    with recording() as recorded:
        try:
            _called(function, request, unpack, differentiate=False)
        except Exception as error:
            answer["message"] = describe(error)
        forward = len(recorded.launches)
        try:
            if request["differentiate"] and not answer["message"]:
                recorded.operators.restart()
                returned, given = _called(function, request, unpack, differentiate=True)
                for launch in recorded.launches[forward:]:
                    launch["repeated"] = True
                results = [x for x in returned.values() if x.requires_grad]
                if not results:
                    raise ValueError("nothing that comes back depends on the inputs for autograd")
                ones = [torch.ones_like(x) for x in results]
                torch.autograd.grad(results, given, ones, allow_unused=True)
        except Exception as error:
            answer["gradients_message"] = describe(error)
            del recorded.launches[forward:]
    return answer | {"launches": recorded.launches, "kernels": triton_sources(*recorded.kernels.values())}


def _called(
    function: Callable[..., Any], request: dict[str, Any], unpack: Unpack, *, differentiate: bool
) -> tuple[dict[str, Any], list[Any]]:
    """What comes back, by name, and the tensors that were given."""
    import torch

    tensors = {
        header["name"]: torch.empty(
            header["shape"], dtype=getattr(torch, header["dtype"]), device="meta", requires_grad=differentiate
        )
        for header in request["tensors"]
    }
    given = list(tensors.values())
    keywords = dict(request["keywords"])
    positional = [tensors.pop(name) for name in request["positional"]]
    with torch.set_grad_enabled(differentiate):
        returned = function(*positional, **keywords, **tensors)
    return unpack(returned, request["returns"]), given


def triton_sources(*functions: Any) -> list[dict[str, Any]]:
    """Every Triton kernel and device function that some code reaches: name, file, line, text, constants."""
    waiting: list[Any] = list(functions)
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
                found[file, first] = {
                    "name": name,
                    "file": file,
                    "line": first,
                    "text": "".join(lines),
                    "constants": _constants(thing),
                }
            waiting.append(thing)
        waiting.extend(referred(thing))
    return list(found.values())


def _constants(function: Callable[..., Any]) -> dict[str, Any]:
    """What a kernel's global names stand for, where that is a number, string, bool or None."""
    values = {name: function.__globals__.get(name, ...) for name in function.__code__.co_names}
    plain = {name: getattr(value, "value", value) for name, value in values.items()}
    return {name: x for name, x in plain.items() if isinstance(x, (bool, int, str)) or x is None}
