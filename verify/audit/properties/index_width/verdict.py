"""Whether the pointer arithmetic of Triton kernels is in 64 bits, read from their source.

Triton computes with 32-bit integers unless an operand is wider: `program_id`, `arange`, loop counters and
whole arguments below 2^31 are narrow. A flat offset, that is a row number times a row's length or a stride,
passes 2^31 for tensors of that many elements; a row or block number does not. So an offset that is added to a
pointer is at risk when it holds such a product of narrow numbers. Numbers read from memory have the width of
what is stored there, which the source does not say.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from verify.audit.properties.index_width.triton_source import Function, Source, called_name


class Width(IntEnum):
    """Of an integer; where several meet, the largest decides."""

    CONSTANT = 0
    NARROW = 1
    READ = 2
    WIDE = 3
    POINTER = 4


class Size(IntEnum):
    """How far an integer may grow: inside a block, block numbers, rows or lengths, flat offsets."""

    SMALL = 0
    BLOCKS = 1
    ROWS = 2
    FLAT = 3


@dataclass(frozen=True)
class Value:
    """What is known of an expression; ``lost`` where a part was flat before anything widened it."""

    width: Width
    size: Size = Size.SMALL
    lost: bool = False
    zero: bool = False

    @property
    def at_risk(self) -> bool:
        return self.lost or (self.width is Width.NARROW and self.size is Size.FLAT)


@dataclass(frozen=True, order=True)
class Risk:
    """A narrow offset that is added to a pointer."""

    file: str
    line: int
    text: str


_UNKNOWN = Value(Width.READ, Size.SMALL)
_CONSTANT = Value(Width.CONSTANT)
_ZERO = Value(Width.CONSTANT, zero=True)
_POINTER = Value(Width.POINTER)
_JOINING = ("where", "minimum", "maximum", "cdiv", "min", "max", "multiple_of", "max_contiguous")
_WIDER = ("int64", "uint64")


def risks(sources: Sequence[Source]) -> list[Risk]:
    """The narrow offsets of flat size in some kernels and the device functions that they call.

    The width of a device function's parameter is that of what its callers give it.
    """
    parsed = [Function(source) for source in sources]
    given: dict[str, dict[str, Value]] = {}
    while True:
        found: list[Risk] = []
        passed: dict[str, dict[str, Value]] = {}
        for function in parsed:
            reading = _Reading(function, given.get(function.source.name, {}), parsed)
            reading.run()
            found += reading.found
            for callee, arguments in reading.passed:
                known = passed.setdefault(callee, {})
                for name, value in arguments.items():
                    known[name] = _met([known[name], value]) if name in known else value
        if passed == given:
            return sorted(set(found))
        given = passed


def _met(values: Iterable[Value]) -> Value:
    """One of several values: as narrow and as large as any of them."""
    values = list(values)
    narrow = [v for v in values if v.width is not Width.CONSTANT] or values
    return Value(min(v.width for v in narrow), max(v.size for v in values), any(v.lost for v in values))


@dataclass
class _Reading:
    """One walk through a function, in the order of its statements."""

    function: Function
    given: Mapping[str, Value]
    others: Sequence[Function]
    found: list[Risk] = field(default_factory=list)
    passed: list[tuple[str, dict[str, Value]]] = field(default_factory=list)
    known: dict[str, Value] = field(default_factory=dict)

    def run(self) -> None:
        for name in self.function.parameters:
            plain = Value(Width.NARROW, Size.ROWS)
            self.known[name] = self.given.get(name, plain)
            if name in self.function.pointers:
                self.known[name] = _POINTER
            if name in self.function.constants:
                self.known[name] = _CONSTANT
        self._statements(self.function.node.body)

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value)
            for target in node.targets:
                self._assign(target, node.value, value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            constant = "constexpr" in ast.unparse(node.annotation)
            self._assign(node.target, node.value, _CONSTANT if constant else self._value(node.value))
        elif isinstance(node, ast.AugAssign):
            same = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
            self._assign(node.target, node.value, self._value(same))
        elif isinstance(node, ast.If):
            self._value(node.test)
            self._branches(node.body, node.orelse)
        elif isinstance(node, ast.For | ast.While):
            if isinstance(node, ast.For):
                self._assign(node.target, node.iter, self._counter(node.iter))
            # Twice, for what one round leaves to the next.
            self._branches(node.body, [])
            self._branches(node.body, [])
        else:
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    self._value(part)

    def _branches(self, *bodies: Sequence[ast.stmt]) -> None:
        before, ends = dict(self.known), []
        for body in bodies:
            self.known = dict(before)
            self._statements(body)
            ends.append(self.known)
        names = {name for end in ends for name in end}
        self.known = {name: _met(end[name] for end in ends if name in end) for name in names}

    def _assign(self, target: ast.expr, expression: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.known[target.id] = value
        elif isinstance(target, ast.Tuple):
            parts = expression.elts if isinstance(expression, ast.Tuple) else [None] * len(target.elts)
            for own, part in zip(target.elts, parts, strict=False):
                self._assign(
                    own, own if part is None else part, _UNKNOWN if part is None else self._value(part)
                )

    def _counter(self, node: ast.expr) -> Value:
        """A loop variable: as wide as the ends of its range."""
        ends = [self._value(x) for x in node.args] if isinstance(node, ast.Call) else [_UNKNOWN]
        width = max((v.width for v in ends), default=Width.NARROW)
        return Value(max(width, Width.NARROW), Size.BLOCKS)

    def _value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name):
            return self.known.get(node.id, _CONSTANT)
        if isinstance(node, ast.Constant):
            return replace(_CONSTANT, zero=node.value == 0)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.UnaryOp):
            return self._value(node.operand)
        if isinstance(node, ast.Subscript):
            return self._value(node.value)
        if isinstance(node, ast.IfExp):
            self._value(node.test)
            return _met([self._value(node.body), self._value(node.orelse)])
        if isinstance(node, ast.Call):
            return self._call(node)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self._value(part)
        return _UNKNOWN

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        width = max(left.width, right.width)
        if width is Width.POINTER:
            if left.at_risk or right.at_risk:
                self._report(node)
            return _POINTER
        lost = left.lost or right.lost or (width > Width.NARROW and (left.at_risk or right.at_risk))
        if isinstance(node.op, ast.Mod | ast.FloorDiv):
            return Value(width, min(left.size, Size.ROWS), lost)
        if not isinstance(node.op, ast.Mult):
            return Value(width, max(left.size, right.size), lost)
        return _ZERO if left.zero or right.zero else Value(width, _product(left, right), lost)

    def _call(self, node: ast.Call) -> Value:
        arguments = [self._value(x) for x in node.args]
        keywords = {k.arg: self._value(k.value) for k in node.keywords if k.arg}
        called = called_name(node)
        for other in self.others:
            if other.source.name == called:
                self.passed.append((called, dict(zip(other.parameters, arguments, strict=False)) | keywords))
        if called in ("to", "cast"):
            own = (
                self._value(node.func.value)
                if isinstance(node.func, ast.Attribute) and called == "to"
                else None
            )
            value = own or (arguments or [_UNKNOWN])[0]
            wide = any(ast.unparse(x).rpartition(".")[2] in _WIDER for x in node.args)
            return Value(Width.WIDE, value.size, value.at_risk) if wide else value
        if called in ("program_id", "num_programs"):
            return Value(Width.NARROW, Size.BLOCKS)
        if called == "arange":
            return Value(Width.NARROW, Size.SMALL)
        if called in _JOINING and arguments:
            sizes, widths = (v.size for v in arguments), (v.width for v in arguments)
            return Value(max(widths), max(sizes), any(v.lost for v in arguments))
        return _UNKNOWN

    def _report(self, node: ast.BinOp) -> None:
        source = self.function.source
        self.found.append(Risk(source.file, source.line + node.lineno - 1, ast.unparse(node)))


def _product(left: Value, right: Value) -> Size:
    """Blocks times a constant are rows; rows times a length, or anything times two of these, are flat."""
    small, large = sorted((left, right), key=lambda v: v.size)
    if small.width is Width.CONSTANT or small.size is Size.SMALL:
        return large.size if large.size in (Size.SMALL, Size.FLAT) else Size(large.size + 1)
    return Size.FLAT


def _loaded(node: ast.expr) -> ast.expr:
    """A target read as an expression."""
    return ast.Name(node.id, ast.Load()) if isinstance(node, ast.Name) else node
