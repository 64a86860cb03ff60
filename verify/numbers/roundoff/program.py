"""Straight-line programs: assignments and one last expression, read into a graph without repetitions."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.model.errors import RequestError, unknown_name

_BINARY: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
FUNCTIONS = ("sqrt", "exp", "log")
_FORM = "write assignments and a last expression over +, -, *, /, " + ", ".join(FUNCTIONS)


@dataclass(frozen=True)
class Node:
    """One value of a program.

    Args:
        operation: ``input``, ``constant``, ``neg``, ``add``, ``sub``, ``mul``, ``div`` or one of `FUNCTIONS`.
        arguments: places of the operands in `Program.nodes`.
        name: of an input.
        value: of a constant.
    """

    operation: str
    arguments: tuple[int, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)


@dataclass(frozen=True)
class Program:
    """Nodes after their operands; the last one is the result. Equal subexpressions are one node: they round
    alike."""

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]

    @property
    def operations(self) -> int:
        """Number of rounded operations."""
        return sum(node.operation not in ("input", "constant", "neg") for node in self.nodes)


def parse(text: str) -> Program:
    """The program of a text such as ``t = 331.4 + 0.6*T`` and, on the next line, ``-t*v / (t + u)``.

    Numbers are decimals, rounded to the format once, as a compiler does; operators associate to the left. A
    name that is not assigned before is an input.

    Raises:
        RequestError: the text is something else.
    """
    try:
        body = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise RequestError(f"the program has a syntax error in line {error.lineno}; {_FORM}") from None
    reader = _Reader(text.strip())
    for statement in body[:-1]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                reader.known[name] = reader.place(value)
            case _:
                raise RequestError(f"{reader.source(statement)!r} is no assignment; {_FORM}")
    if not body or not isinstance(body[-1], ast.Expr):
        raise RequestError(f"the program does not end with an expression; {_FORM}")
    last = reader.place(body[-1].value)
    return _pruned(list(reader.places), last)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.known: dict[str, int] = {}
        self.places: dict[Node, int] = {}

    def source(self, node: ast.AST) -> str:
        return ast.get_source_segment(self._text, node) or ""

    def place(self, node: ast.expr) -> int:
        match node:
            case ast.Name(id=name):
                if name not in self.known:
                    self.known[name] = self._add(Node("input", name=name))
                return self.known[name]
            case ast.Constant(value=int() | float()):
                return self._add(Node("constant", value=Fraction(self.source(node).replace("_", ""))))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._add(Node("neg", (self.place(operand),)))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                return self._add(Node(_BINARY[type(operator)], (self.place(left), self.place(right))))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
                if name not in FUNCTIONS:
                    raise unknown_name("function", name, FUNCTIONS)
                return self._add(Node(name, (self.place(argument),)))
        raise RequestError(f"{self.source(node)!r} is not part of a program; {_FORM}")

    def _add(self, node: Node) -> int:
        return self.places.setdefault(node, len(self.places))


def _pruned(nodes: list[Node], last: int) -> Program:
    """Without the nodes that the result does not use."""
    used = {last}
    for place in range(last, -1, -1):
        if place in used:
            used.update(nodes[place].arguments)
    kept = {place: new for new, place in enumerate(sorted(used))}
    moved = tuple(
        Node(n.operation, tuple(kept[a] for a in n.arguments), n.name, n.value)
        for n in (nodes[place] for place in kept)
    )
    return Program(moved, tuple(n.name for n in moved if n.operation == "input"))


def box_of(program: Program, box: Mapping[str, tuple[Any, Any]]) -> list[tuple[Fraction, Fraction]]:
    """The ranges of the program's inputs, in its order, exactly.

    Raises:
        RequestError: a range is missing, reversed, or for no input.
    """
    from verify.numbers.convert import to_fraction

    for name in box:
        if name not in program.inputs:
            raise unknown_name("input", name, program.inputs)
    ranges = []
    for name in program.inputs:
        if name not in box:
            raise RequestError(f"input {name} has no range; give one, such as {name} in [0, 1]")
        low, high = (to_fraction(end) for end in box[name])
        if low > high:
            raise RequestError(f"the range [{float(low):g}, {float(high):g}] of {name} is reversed")
        ranges.append((low, high))
    return ranges
