"""The Triton kernels that a call at a large shape launches, and where their offsets wrap."""

import ast
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Self

from verify.audit.properties.index_width.launch import Launch, Wrap
from verify.audit.properties.index_width.program import Followed, follow
from verify.audit.properties.index_width.triton_source import Function, Source, called_name
from verify.audit.properties.index_width.verdict import Risk, risks

MOST_BYTES = 80 << 30
"""Of the tensors of one launch: what a GPU in use holds."""
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
Place = tuple[str, int]
"""A file and a line."""


@dataclass(frozen=True)
class Trial:
    """What came of one call on tensors without memory.

    Args:
        shape: B, T, H, K and V.
        message: why the call did not end well, if so.
        gradients_message: the same of its gradients.
        read: the number of kernels and device functions that were launched.
        at_risk: where they add 32-bit offsets of flat size to a pointer.
        followed: the kernels with such offsets that were followed: a GPU holds the tensors of their launch.
        left: those that were not.
        unclear: places that may add one, which is not known.
        peaks: by place of such an addition, the largest number that had to fit into 32 bits.
        wraps: accesses that go elsewhere, each after the bytes of the tensors of its launch.
    """

    shape: Mapping[str, int]
    message: str = ""
    gradients_message: str = ""
    read: int = 0
    at_risk: tuple[Risk, ...] = ()
    followed: frozenset[Place] = frozenset()
    left: frozenset[Place] = frozenset()
    unclear: frozenset[Place] = frozenset()
    peaks: Mapping[Place, int] = field(default_factory=dict)
    wraps: tuple[tuple[int, Wrap], ...] = ()

    @property
    def largest(self) -> Wrap:
        """The one that reaches furthest."""
        return max((wrap for _, wrap in self.wraps), key=lambda wrap: wrap.exact)

    @property
    def size(self) -> int:
        """Bytes of the tensors of its launch."""
        return next(size for size, wrap in self.wraps if wrap is self.largest)

    @classmethod
    def of(cls, shape: Mapping[str, int], answer: dict[str, Any], done: Set[Place] = frozenset()) -> Self:
        """From the worker's answer, without the kernels that are done.

        Raises SyntaxError or StopIteration for a source that cannot be read.
        """
        if answer["message"]:
            return cls(shape, answer["message"])
        sources = [Source(**kernel) for kernel in answer["kernels"]]
        functions = {(x.file, x.line): Function(x) for x in sources}
        at_risk, seen = risks(sources), Followed()
        risky = _risky(functions, at_risk)
        wanted = {place for place, x in functions.items() if x.source.name in risky} - done
        found: list[tuple[int, Wrap]] = []
        followed = set()
        for launch in _launches(answer["launches"], functions):
            place = launch.function.source.file, launch.function.source.line
            if place in wanted:
                before = len(seen.wraps)
                follow(launch, _by_name(functions), seen)
                found += [(launch.size, wrap) for wrap in seen.wraps[before:]]
                followed.add(place)
        launched = {(x["file"], x["line"]) for x in answer["launches"]}
        left = frozenset(wanted & launched - followed)
        about = answer["gradients_message"], len(sources), tuple(at_risk)
        return cls(
            shape, "", *about, frozenset(followed), left, frozenset(seen.unclear), seen.peaks, tuple(found)
        )


def _launches(entries: list[dict[str, Any]], functions: Mapping[Place, Function]) -> list[Launch]:
    """Those that a GPU can make, each once; ones before may have written what later ones read."""
    written: set[int] = set()
    found = []
    for entry in entries:
        function = functions[entry["file"], entry["line"]]
        arguments, grid = entry["arguments"], tuple(entry["grid"])
        launch = Launch(function, grid, arguments, frozenset(written))
        fits = all(n <= most for n, most in zip(grid, _LARGEST_GRID, strict=True))
        if fits and launch.size <= MOST_BYTES and not entry["repeated"]:
            found.append(launch)
        given = (arguments.get(name, {}) for name in function.written)
        written |= {x["memory"] for x in given if "memory" in x}
    return found


def _risky(functions: Mapping[Place, Function], at_risk: list[Risk]) -> set[str]:
    """The functions that add an offset at risk, or call one that does."""
    found = set()
    for function in functions.values():
        own = function.source
        lines = range(own.line, own.line + len(own.text.splitlines()))
        if any(risk.file == own.file and risk.line in lines for risk in at_risk):
            found.add(own.name)
    grown = True
    while grown:
        before = len(found)
        found |= {x.source.name for x in functions.values() if _calls(x) & found}
        grown = len(found) > before
    return found


def _calls(function: Function) -> set[str]:
    return {called_name(node) for node in ast.walk(function.node) if isinstance(node, ast.Call)}


def _by_name(functions: Mapping[Place, Function]) -> dict[str, list[Function]]:
    named: dict[str, list[Function]] = {}
    for function in functions.values():
        named.setdefault(function.source.name, []).append(function)
    return named
