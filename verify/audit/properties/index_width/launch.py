"""A recorded launch of a Triton kernel, and an access of it that goes to a wrong address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.properties.index_width.triton_source import Function
from verify.audit.properties.index_width.values import UNKNOWN, Memory, Pointer, Value, scalar


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with its grid and arguments, and the allocations that something may have written into."""

    function: Function
    grid: tuple[int, ...]
    arguments: Mapping[str, dict[str, Any]]
    written: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        sizes = {x["memory"]: x["bytes"] for x in self.arguments.values() if "memory" in x}
        return sum(sizes.values())

    def scope(self) -> dict[str, Value]:
        """What the kernel's parameters stand for when it begins."""
        return {name: self._argument(name, given) for name, given in self.arguments.items()}

    def _argument(self, name: str, given: dict[str, Any]) -> Value:
        if "memory" in given:
            values = None if given["memory"] in self.written else given["values"]
            known = None if values is None else tuple(values)
            sizes = given["before"], given["after"], given["dtype"], given["memory"], given["bytes"]
            zero = np.zeros((), dtype=np.int64)
            return Pointer(Memory(name, *sizes, known), zero, zero)
        if "value" not in given:
            return UNKNOWN
        value = given["value"]
        if name in self.function.constants or not isinstance(value, int):
            return value
        if isinstance(value, bool):
            return scalar(int(value)).cast(1, False)
        return scalar(value, self.function.bits.get(name, 32))


@dataclass(frozen=True)
class Wrap:
    """An access whose offset is not the one in 64 bits.

    Args:
        kernel, file, line: where the offset is added to the pointer.
        text: the sum there.
        tensor: the argument that the pointer starts from; it has the element at the exact offset.
        exact, actual: the offset in elements, and what 32 bits make of it.
        program: the number of the program, by axis.
        store: whether it writes.
    """

    kernel: str
    file: str
    line: int
    text: str
    tensor: str
    exact: int
    actual: int
    program: tuple[int, ...]
    store: bool
