"""Which operation of an algorithm's model loses an output: each rounded alone, the others exact."""

import functools
import linecache
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verify.audit.case import Case
from verify.audit.reference.results import Reference
from verify.audit.tolerance.predicted import model
from verify.audit.tolerance.predicted.operations import ELEMENTARY, FORMULAS, ROUNDED
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.tensor_core import ProductRounding
from verify.numbers.formats import FLOAT64, format_named

_RUNS = 8
_ROUNDING = ROUNDED | ELEMENTARY | FORMULAS.keys()
_NOT_MODEL = (
    str(Path(torch.__file__).parent),
    *(str(Path(__file__).with_name(f"{name}.py")) for name in ("sensitivity", "rounding", "tensor_core")),
)


@dataclass(frozen=True)
class Site:
    """A source line of the model and the torch operation that it calls there."""

    operation: str
    file: str
    line: int

    def __str__(self) -> str:
        place = f"{Path(self.file).parent.name}/{Path(self.file).name}:{self.line}"
        return f"{self.operation} in {place} ({linecache.getline(self.file, self.line).strip()})"


@dataclass(frozen=True)
class Cause:
    """An operation whose rounding alone moves an output row.

    Args:
        site: the operation and its source line.
        call: which of the ``calls`` made there moves it most, from 1.
        calls: how often the line is run.
        deviation: root mean square of the row's 2-norm error when all calls of the line are rounded.
    """

    site: Site
    call: int
    calls: int
    deviation: float


class Alone(ProductRounding):  # type: ignore[no-untyped-call]
    """Rounds chosen calls and leaves the others exact; counts all of them in ``sites``."""

    def __init__(self, *args: Any, chosen: Collection[int], sites: list[Site], **options: Any) -> None:
        super().__init__(*args, **options)
        self._chosen, self._sites, self._inner = chosen, sites, False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func._schema.name.removeprefix("aten::").rstrip("_")
        if self._inner or not (name in _ROUNDING or name in self._rules):
            return super().__torch_dispatch__(func, types, args, kwargs)
        self._sites.append(_site(name))
        if len(self._sites) - 1 not in self._chosen:
            return func(*args, **(kwargs or {}))
        self._inner = True
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            self._inner = False


def causes(
    case: Case, reference: Reference, algorithm: Algorithm, row: tuple[int, int, int], seed: int = 0
) -> list[Cause]:
    """The operations by the deviation that each alone causes in one output row, largest first.

    Args:
        case: the input.
        reference: its exact result.
        algorithm: the declared form and formats.
        row: sequence, token and head of the output.
        seed: seed of the roundings.
    """
    compute = format_named(algorithm.model_dtype)
    target = format_named("float32") if compute == FLOAT64 else compute
    ratio = float(compute.unit_roundoff / target.unit_roundoff)
    exact = reference.output[row]

    def deviation(chosen: Collection[int], sites: list[Site]) -> float:
        mode = functools.partial(Alone, chosen=chosen, sites=sites)
        output = model.run(case, algorithm, target, _RUNS, seed, mode=mode)["output"]
        rows = output.reshape(_RUNS, *reference.output.shape)[:, *row]
        return ratio * float(np.sqrt(np.square(rows - exact).sum() / _RUNS))

    sites: list[Site] = []
    deviation((), sites)
    calls: dict[Site, list[int]] = {}
    for number, site in enumerate(sites):
        calls.setdefault(site, []).append(number)
    sizes = {site: deviation(frozenset(numbers), []) for site, numbers in calls.items()}
    ranked = sorted(sizes, key=lambda site: -sizes[site])
    found = [Cause(site, 0, len(calls[site]), sizes[site]) for site in ranked]
    if not found:
        return found
    first = calls[ranked[0]]
    alone = [deviation(frozenset([number]), []) for number in _some(first)]
    call = _some(first)[int(np.argmax(alone))]
    return [Cause(ranked[0], first.index(call) + 1, len(first), sizes[ranked[0]]), *found[1:]]


def _some(numbers: list[int], most: int = 16) -> list[int]:
    """All of a few calls, or as many spread over them."""
    step = -(-len(numbers) // most)
    return numbers[::step]


def _site(operation: str) -> Site:
    """The nearest line that belongs to the model."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_MODEL):
        frame = frame.f_back
    return Site(operation, frame.f_code.co_filename, frame.f_lineno)
