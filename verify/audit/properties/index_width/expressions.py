"""Expressions of a Triton kernel, evaluated as it computes them and as it would without wrapping.

What the source and the launch do not determine, such as numbers read from memory, is unknown, and so is
everything that depends on it.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from verify.audit.properties.index_width.triton_source import called_name, is_store
from verify.audit.properties.index_width.values import (
    COMPARISONS,
    OPERATIONS,
    UNKNOWN,
    Number,
    Pointer,
    Unknown,
    Value,
    as_number,
    chosen,
    combined,
    scalar,
)

_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "Min": min,
    "Max": max,
}
_PAIRED = {"minimum": "Min", "maximum": "Max", "min": "Min", "max": "Max"}
_AS_GIVEN = ("multiple_of", "max_contiguous", "max_constancy")


class Frame(Protocol):
    """What an expression needs to know of where it stands."""

    def named(self, name: str) -> Value: ...

    def program(self, axis: int) -> int: ...

    def programs(self, axis: int) -> int: ...

    def calls(self, name: str, given: list[Value], keywords: dict[str, Value]) -> Value: ...

    def knows(self, name: str) -> bool: ...

    def adds(self, node: ast.expr | ast.stmt, by: Number) -> None: ...

    def unclear(self, *nodes: ast.AST) -> None: ...

    def accesses(self, node: ast.Call, pointer: Pointer, mask: Value, *, store: bool) -> None: ...


@dataclass(frozen=True, eq=False)
class BlockPointer:
    """A block of a tensor, of which strides count in 64 bits."""

    base: Value
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    offsets: tuple[Value, ...]
    block: tuple[Value, ...]

    def lanes(self, checked: tuple[Value, ...], line: int, text: str) -> tuple[Value, Value]:
        """Its addresses, and which of them are inside the tensor."""
        place, inside = self.base, scalar(1, 1)
        for axis, parts in enumerate(zip(self.shape, self.strides, self.offsets, self.block, strict=True)):
            size, stride, start, width = parts
            if isinstance(width, Unknown) or not isinstance(place, Pointer):
                return UNKNOWN, UNKNOWN
            along = np.arange(width).reshape([-1 if i == axis else 1 for i in range(len(self.block))])
            index = combined("Add", start, Number(along, along, 32))
            step, end = as_number(stride), as_number(size)
            if isinstance(index, Unknown) or step is None or end is None:
                return UNKNOWN, UNKNOWN
            far = combined("Mult", index.cast(64, True), step.cast(64, True))
            if isinstance(far, Unknown):
                return UNKNOWN, UNKNOWN
            place = place.moved(far, 1, line, text)
            if axis in checked:
                low, high = combined("GtE", index, 0), combined("Lt", index, end)
                inside = combined("BitAnd", inside, combined("BitAnd", low, high))
        return place, inside


def evaluate(node: ast.expr, frame: Frame) -> Value:
    """The value of an expression; every access to memory inside it is told to the frame."""
    if isinstance(node, ast.Name):
        return frame.named(node.id)
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, bool | int | str) or node.value is None else UNKNOWN
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(evaluate(x, frame) for x in node.elts)
    if isinstance(node, ast.BinOp):
        found = _binary(node, evaluate(node.left, frame), evaluate(node.right, frame), frame)
        if isinstance(found, Unknown):
            frame.unclear(node)
        return found
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = evaluate(node.left, frame), evaluate(node.comparators[0], frame)
        return operation(type(node.ops[0]).__name__, left, right)
    if isinstance(node, ast.UnaryOp):
        return _unary(type(node.op).__name__, evaluate(node.operand, frame))
    if isinstance(node, ast.BoolOp):
        return _both(node, [truth(evaluate(x, frame)) for x in node.values])
    if isinstance(node, ast.IfExp):
        decided = truth(evaluate(node.test, frame))
        if decided is None:
            frame.unclear(node.body, node.orelse)
            return UNKNOWN
        return evaluate(node.body if decided else node.orelse, frame)
    if isinstance(node, ast.Subscript):
        return _part(evaluate(node.value, frame), node.slice)
    if isinstance(node, ast.Call):
        return _call(node, frame)
    return UNKNOWN


def truth(value: Value) -> bool | None:
    """Whether a branch on a value is taken; None where that is not known."""
    if isinstance(value, Number):
        return bool(value.actual.reshape(-1)[0]) if value.actual.size == 1 else None
    if isinstance(value, bool | int | str) or value is None:
        return bool(value)
    return True if isinstance(value, Pointer) else None


def operation(name: str, left: Value, right: Value) -> Value:
    """One operation, by the name of its syntax node."""
    if name in ("Is", "IsNot") and None in (left, right):
        known = not any(isinstance(x, Unknown) for x in (left, right))
        return (left is right) == (name == "Is") if known else UNKNOWN
    plain = (bool, int, str)
    if isinstance(left, plain) and isinstance(right, plain):
        try:
            return _PLAIN[name](left, right) if name in _PLAIN else UNKNOWN
        except (TypeError, ZeroDivisionError, ValueError):
            return UNKNOWN
    if name in OPERATIONS or name in COMPARISONS:
        return combined(name, left, right)
    return UNKNOWN


def _binary(node: ast.BinOp, left: Value, right: Value, frame: Frame) -> Value:
    name = type(node.op).__name__
    if isinstance(right, Pointer) and name == "Add":
        left, right = right, left
    if not isinstance(left, Pointer):
        return operation(name, left, right)
    by = as_number(right)
    if by is None or name not in ("Add", "Sub"):
        return UNKNOWN
    frame.adds(node, by)
    return left.moved(by, 1 if name == "Add" else -1, node.lineno, ast.unparse(node))


def _unary(name: str, value: Value) -> Value:
    if isinstance(value, Number):
        if name == "USub":
            return combined("Sub", 0, value)
        return combined("BitXor", value, True) if value.bits == 1 else UNKNOWN
    if name == "USub" and isinstance(value, int):
        return -value
    return not value if name == "Not" and (value is None or isinstance(value, bool | int | str)) else UNKNOWN


def _both(node: ast.BoolOp, parts: list[bool | None]) -> Value:
    deciding = isinstance(node.op, ast.Or)
    if deciding in parts:
        return deciding
    return UNKNOWN if None in parts else not deciding


def _part(value: Value, index: ast.expr) -> Value:
    """An element of a tuple, or a tensor with further axes."""
    if isinstance(value, tuple):
        i = index.value if isinstance(index, ast.Constant) else None
        return value[i] if isinstance(i, int) and i < len(value) else UNKNOWN
    elements = index.elts if isinstance(index, ast.Tuple) else [index]
    kinds = [None if isinstance(x, ast.Constant) and x.value is None else slice(None) for x in elements]
    known = all(
        isinstance(x, ast.Slice) or (isinstance(x, ast.Constant) and x.value is None) for x in elements
    )
    if known and isinstance(value, Number | Pointer) and kinds.count(slice(None)) <= value.exact.ndim:
        return value.shaped(lambda x: x[tuple(kinds)])
    return UNKNOWN


def _call(node: ast.Call, frame: Frame) -> Value:
    name = called_name(node)
    given = [evaluate(x, frame) for x in node.args]
    keywords = {k.arg: evaluate(k.value, frame) for k in node.keywords if k.arg}
    if name in ("load", "store") or is_store(node):
        return _access(node, given, keywords, frame)
    if name in ("to", "cast") and node.args:
        method = name == "to" and isinstance(node.func, ast.Attribute)
        value = evaluate(node.func.value, frame) if method else given[0]  # type: ignore[attr-defined]
        return _cast(value, ast.unparse(node.args[0 if method else 1]).rpartition(".")[2])
    if frame.knows(name):
        return frame.calls(name, given, keywords)
    axis = given[0] if given else keywords.get("axis")
    if name in ("program_id", "num_programs") and isinstance(axis, int):
        return scalar((frame.program if name == "program_id" else frame.programs)(axis))
    return _made(name, given, keywords)


def _made(name: str, given: list[Value], keywords: dict[str, Value]) -> Value:
    """What a function of Triton gives."""
    if name == "arange" and all(isinstance(x, int) for x in given[:2]) and len(given) > 1:
        x = np.arange(*given[:2], dtype=np.int64)
        return Number(x, x, 32)
    if name in _AS_GIVEN and given:
        return given[0]
    if name in _PAIRED and len(given) == 2:
        return operation(_PAIRED[name], *given)
    if name == "cdiv" and len(given) == 2:
        return operation("FloorDiv", operation("Sub", operation("Add", *given), 1), given[1])
    if name == "where" and len(given) == 3:
        return chosen(*given)
    if name == "make_block_ptr":
        fields = ("base", "shape", "strides", "offsets", "block_shape")
        parts = dict(zip(fields, given, strict=False)) | keywords
        inner = [parts.get(field) for field in fields[1:]]
        if all(isinstance(x, tuple) for x in inner) and len({len(x) for x in inner if x is not None}) == 1:
            return BlockPointer(parts["base"], *inner)  # type: ignore[arg-type]
    if name == "advance" and len(given) == 2 and isinstance(given[0], BlockPointer):
        block, by = given
        if isinstance(by, tuple) and len(by) == len(block.offsets):
            moved = tuple(operation("Add", x, y) for x, y in zip(block.offsets, by, strict=True))
            return BlockPointer(block.base, block.shape, block.strides, moved, block.block)
    return UNKNOWN


def _cast(value: Value, to: str) -> Value:
    number, signed = as_number(value), to.startswith("int")
    digits = to.removeprefix("u").removeprefix("int")
    if number is None or not to.lstrip("u").startswith("int") or digits not in ("8", "16", "32", "64"):
        return UNKNOWN
    return number.cast(int(digits), signed)


def _access(node: ast.Call, given: list[Value], keywords: dict[str, Value], frame: Frame) -> Value:
    """A load or store: told to the frame; what is read is known where the numbers of the tensor are."""
    pointer, store = given[0] if given else UNKNOWN, is_store(node)
    place = 2 if store else 1
    third = given[place] if len(given) > place and called_name(node) != "atomic_cas" else True
    mask = keywords.get("mask", third)
    if isinstance(pointer, BlockPointer):
        checked = keywords.get("boundary_check", ())
        checked = checked if isinstance(checked, tuple) else (checked,)
        pointer, mask = pointer.lanes(checked, node.lineno, ast.unparse(node))
    if not isinstance(pointer, Pointer):
        return UNKNOWN
    frame.accesses(node, pointer, True if mask is None else mask, store=store)
    values = pointer.memory.values
    at = pointer.actual
    if store or values is None or mask is not True or at.min() < 0 or at.max() >= len(values):
        return UNKNOWN
    read = np.array(values, dtype=np.int64)[at]
    bits = int("".join(c for c in pointer.memory.dtype if c.isdigit()) or 1)
    return Number(read, read, bits, not pointer.memory.dtype.startswith("u"))
