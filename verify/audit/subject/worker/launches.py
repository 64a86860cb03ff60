"""Which Triton kernels a call launches on tensors too large to make, and with what: recorded, not run."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_MOST_VALUES = 1 << 20
_LIMIT_S = 3
_VALUES = "_attnproof_values"
_KEEPING = frozenset({"reshape", "view", "flatten", "contiguous", "to", "long", "int", "clone", "detach"})
"""Methods that leave the numbers of a tensor, in their order."""


class _KnownNumbers(TorchFunctionMode):
    """Tensors made of given integers keep them beside their shape."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if not isinstance(result, torch.Tensor) or result.is_floating_point():
            return result
        name = getattr(function, "__name__", "")
        known = None
        if name in ("tensor", "as_tensor") and args and not isinstance(args[0], torch.Tensor):
            known = torch.tensor(args[0], device="cpu").flatten().tolist()
        elif name in _KEEPING and args and isinstance(args[0], torch.Tensor):
            known = _numbers(args[0])
        if known is not None and len(known) == result.numel() <= _MOST_VALUES:
            setattr(result, _VALUES, (known, result._version))
        return result


def _numbers(tensor: torch.Tensor) -> list[int] | None:
    """The numbers of a tensor, where they are known and nothing was written there since."""
    known, version = getattr(tensor, _VALUES, (None, None))
    return known if version == tensor._version else None


class _OwnOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators that Python code registered run that code, not the stand-in that only says shapes.

    Raises TimeoutError for a call that takes long to say what it would do, as a loop over many tokens does.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.restart()

    def restart(self) -> None:
        """Give what follows the whole time."""
        self._end = time.process_time() + _LIMIT_S

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        from torch._library.custom_ops import OPDEFS

        if time.process_time() > self._end:
            raise TimeoutError(f"it takes more than {_LIMIT_S} s of CPU time to follow")
        own = OPDEFS.get(function._schema.name)
        if own is None:
            return function(*args, **(kwargs or {}))
        with self, torch.device("meta"), _KnownNumbers():
            return own._init_fn(*args, **(kwargs or {}))


@dataclass
class Recorded:
    """The Triton kernels that were launched.

    Args:
        launches: in order. Each has the file and line of the kernel, its ``grid`` and its ``arguments`` by
            name: a number, string, bool or None as it is; of a tensor the number of elements before and
            after the place it points to, their dtype and bytes, which memory it is, and its numbers where
            Python code gave them. Of several configurations that would be timed, the first is taken.
        kernels: each once.
        operators: what keeps the time.
    """

    launches: list[dict[str, Any]] = field(default_factory=list)
    kernels: dict[int, Any] = field(default_factory=dict)
    operators: _OwnOperators = field(default_factory=_OwnOperators)


@contextlib.contextmanager
def recording() -> Iterator[Recorded]:
    """Record what is launched meanwhile, instead of running it; tensors are made without memory."""
    recorded = Recorded()
    with _patched(recorded), torch.device("meta"), recorded.operators, _KnownNumbers():
        yield recorded


@contextlib.contextmanager
def _patched(recorded: Recorded) -> Iterator[None]:
    if "triton" not in sys.modules:
        yield
        return
    kinds = "autotuner.Autotuner", "interpreter.InterpretedFunction", "jit.JITFunction"
    tuned, interpreted, compiled = (_kind(*name.split(".")) for name in kinds)

    def launch(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        if not warmup:
            recorded.kernels[id(kernel)] = kernel
            recorded.launches.append(_launch(kernel.fn, args, grid, kwargs))

    def configured(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return kernel.fn.run(*args, **{**kernel.configs[0].all_kwargs(), **kwargs})

    replaced = {interpreted: launch, compiled: launch, tuned: configured}
    before = {kind: kind.run for kind in replaced}
    try:
        for kind, run in replaced.items():
            kind.run = run
        yield
    finally:
        for kind, run in before.items():
            kind.run = run


def _kind(module: str, name: str) -> Any:
    """A class of Triton, which is not imported here for a target that does without."""
    return getattr(importlib.import_module(f"triton.runtime.{module}"), name)


def _launch(function: Any, args: Any, grid: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    signature = inspect.signature(function)
    bound = signature.bind(*args, **{k: v for k, v in kwargs.items() if k in signature.parameters})
    bound.apply_defaults()
    sizes = [int(n) for n in (grid(dict(bound.arguments)) if callable(grid) else grid)]
    return {
        "file": inspect.getsourcefile(function),
        "line": inspect.getsourcelines(function)[1],
        "repeated": False,
        "grid": sizes + [1] * (3 - len(sizes)),
        "arguments": {name: _described(value) for name, value in bound.arguments.items()},
    }


def _described(value: Any) -> dict[str, Any]:
    # A constexpr holds its value.
    value = getattr(value, "value", value)
    if isinstance(value, (bool, int, str)) or value is None:
        return {"value": value}
    if not isinstance(value, torch.Tensor):
        return {"unknown": type(value).__name__}
    size = value.untyped_storage().nbytes()
    return {
        "before": value.storage_offset(),
        "after": size // value.element_size() - value.storage_offset(),
        "dtype": str(value.dtype).removeprefix("torch."),
        "memory": value.untyped_storage()._cdata,
        "bytes": size,
        "values": _numbers(value),
    }
