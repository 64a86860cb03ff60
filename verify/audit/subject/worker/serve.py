"""Runs cases on request.

Reads JSON lines from a private socket, never from stdin, and answers there, never on stdout: what the
kernel prints cannot be mistaken for an answer. Tensors travel as raw bytes in files whose layout the
message gives.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .identity import identify, refuse_triton_without_gpu
from .large import launches, on_meta, triton_sources
from .lookup import CannotStart, describe, find, load_module
from .places import broken_promise, prepare, written
from .sources import sources
from .tensors import LAYOUTS, read_tensors, write_tensors

if TYPE_CHECKING:
    import torch

_GRACE_S = 30


def _out_of_memory(error: BaseException) -> bool:
    import torch

    kinds = (MemoryError, torch.cuda.OutOfMemoryError)
    return isinstance(error, kinds) or "can't allocate memory" in str(error)


_RETURNS = {
    "output-and-state": (("output", "final_state"), "a pair (output, final state)"),
    "output": (("output",), "the output alone"),
    "output-first": (("output",), "a tuple that starts with the output"),
    "nothing": ((), "nothing"),
}


class WrongReturn(Exception):
    """What came back is not what the convention says."""


class NoGradient(Exception):
    """Something that may be differentiated is cut off from an input."""


def gradients(
    results: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor], cotangents: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The gradient of the functional for every input, as ``d_`` and its name. Raises NoGradient."""
    import torch

    wanted = {name: results[name] for name in cotangents}
    for name, tensor in wanted.items():
        if not tensor.requires_grad:
            raise NoGradient(f"the {name.replace('_', ' ')} does not depend on the inputs for autograd")
    weights = [cotangents[name].to(tensor.dtype) for name, tensor in wanted.items()]
    found = torch.autograd.grad(list(wanted.values()), list(inputs.values()), weights, allow_unused=True)
    for name, gradient in zip(inputs, found, strict=True):
        if gradient is None:
            raise NoGradient(f"no gradient reaches the input {name!r}")
    return {f"d_{name}": gradient for name, gradient in zip(inputs, found, strict=True)}


def unpack(returned: Any, returns: str) -> dict[str, torch.Tensor]:
    """Output and final state by name. Raises WrongReturn, saying what came back instead."""
    import torch

    names, wanted = _RETURNS[returns]
    if not names:
        return {}
    values = (returned,) if returns == "output" else returned
    if not isinstance(values, (tuple, list)):
        came = f"a {type(returned).__name__}"
        raise WrongReturn(f"the target returned {came}; the convention says it returns {wanted}")
    if returns == "output-first":
        values = values[:1]
    if len(values) != len(names):
        raise WrongReturn(
            f"the target returned {len(values)} values; the convention says it returns {wanted}"
        )
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, torch.Tensor):
            raise WrongReturn(f"the target returned {name} = {type(value).__name__}, not a tensor")
    return dict(zip(names, values, strict=True))


def run_case(function: Callable[..., Any], request: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Call the target once and report what happened; a fault of the target is part of the report."""
    import torch

    device = config["device"]
    inputs = read_tensors(config["input"], request["tensors"], device)
    cotangents = {name: inputs.pop(name) for name in request["cotangents"]}
    absent = {name: inputs.pop(name) for name in request["absent"]}
    arranged = [name for name in request["arranged"] if name in inputs]
    inputs |= {name: LAYOUTS[request["layout"]](inputs[name]) for name in arranged}
    prepare(request["places"], inputs, device)
    if cotangents:
        inputs = {name: tensor.requires_grad_() for name, tensor in inputs.items()}
    kept = dict(inputs)
    before = {name: tensor.detach().cpu().clone() for name, tensor in kept.items()}
    keywords = dict(request["keywords"])
    positional = [inputs.pop(name) for name in request["positional"]]
    keywords.update(inputs | dict.fromkeys(absent))
    if request["offsets"] is not None:
        name, offsets = request["offsets"]
        keywords[name] = torch.tensor(offsets, dtype=torch.int64, device=device)
    report: dict[str, Any] = {"kind": None, "message": "", "mutated": None, "tensors": []}
    # Should the parent die while the target hangs, the alarm ends this process.
    signal.alarm(int(request["time_limit_s"]) + _GRACE_S)
    process = os.getpid()
    start = time.perf_counter()
    try:
        with torch.set_grad_enabled(bool(cotangents)):
            returned = function(*positional, **keywords)
            results = unpack(returned, request["returns"]) | written(request["places"], kept)
            if cotangents:
                results |= gradients(results, kept, cotangents)
            if device != "cpu":
                torch.cuda.synchronize()
    except NoGradient as error:
        report["kind"], report["message"] = "no-gradient", str(error)
    except WrongReturn as error:
        report["kind"], report["message"] = "wrong-return", str(error)
    except BaseException as error:
        report["kind"] = "memory" if _out_of_memory(error) else "raised"
        report["message"] = describe(error)
    finally:
        if os.getpid() != process:  # a child the target forked; its parent answers
            os._exit(0)
        report["seconds"] = time.perf_counter() - start
        signal.alarm(0)
    if report["kind"] in ("memory", "raised", "no-gradient"):
        return report
    try:
        if report["kind"] is None:
            report["tensors"] = write_tensors(config["output"], results)
    except (RuntimeError, NotImplementedError) as error:
        report["kind"] = "wrong-return"
        report["message"] = f"the returned tensors cannot be read: {describe(error)}"
    report["mutated"] = broken_promise(request["places"], before, kept)
    return report


def limit_memory(size: int) -> None:
    """Bound private memory. Not the address space: CUDA reserves far more of that than it uses."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    size = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def start(config: dict[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Set the limits, import the target and torch."""
    limit_memory(config["memory_bytes"])
    module = load_module(config["location"], config["is_file"])
    function = find(module, config["location"], config["attribute"])
    try:
        import torch
    except Exception as error:
        raise CannotStart("environment", f"{sys.executable} cannot import torch: {describe(error)}") from None
    torch.set_num_threads(config["threads"])
    # torch.empty then gives NaN, so that a part of the output nobody wrote shows.
    torch.use_deterministic_algorithms(True, warn_only=True)
    if (config["device"] or "cpu").startswith("cuda") and not torch.cuda.is_available():
        message = f"device {config['device']} was asked for and {sys.executable} sees no GPU"
        raise CannotStart("environment", message)
    identity = identify(config, module, function)
    refuse_triton_without_gpu(identity, function)
    config["device"] = identity["device"]
    config["home"] = os.path.dirname(os.path.abspath(getattr(module, "__file__", None) or "."))
    return function, identity


def main() -> None:
    """Serve one target until the socket closes."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    channel = socket.socket(fileno=descriptor).makefile("rw", encoding="utf-8")

    def answer(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    config = json.loads(channel.readline())
    try:
        function, identity = start(config)
    except CannotStart as problem:
        answer({"kind": problem.kind, "message": str(problem)})
        return
    answer({"kind": None, "identity": identity})
    for line in channel:
        request = json.loads(line)
        if request.get("ask") == "sources":
            answer({"sources": sources(config["home"])})
            continue
        if request.get("ask") == "shapes":
            answer(on_meta(function, request, unpack))
            continue
        if request.get("ask") == "launches":
            answer(launches(function, request, unpack))
            continue
        if request.get("ask") == "triton":
            answer({"kernels": triton_sources(function)})
            continue
        try:
            report = run_case(function, request, config)
        except (MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            report = {"kind": "memory", "message": describe(error), "seconds": 0.0}
        answer(report)
