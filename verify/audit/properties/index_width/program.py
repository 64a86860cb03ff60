"""A launch of a Triton kernel, followed through its source by some of its programs to where an offset wraps.

No number is guessed: a program runs with its own number, the arguments it was launched with and the sizes of
the tensors they point to. Of a loop it runs the first and the last round, with what a fixed step leads to.
Where a branch depends on what is not known, nothing is said about what it guards.
"""

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from verify.audit.properties.index_width.expressions import evaluate, operation, truth
from verify.audit.properties.index_width.launch import Launch, Wrap
from verify.audit.properties.index_width.triton_source import Function, called_name
from verify.audit.properties.index_width.values import (
    UNKNOWN,
    Number,
    Pointer,
    Unknown,
    Value,
    as_number,
    scalar,
    wrapped,
)

_UNROLLED = 4
_UNROLLED_STATICALLY = 64
_DEPTH = 16


class _Undecided(Exception):
    """Whether the rest of a function runs is not known."""


class _Returned(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass
class Followed:
    """What was seen of launches.

    Args:
        wraps: accesses that go to a wrong address.
        peaks: by file and line where an offset is added to a pointer, the largest size that had to fit into
            32 bits in it.
        unclear: places where that is not known, or which may or may not have been reached.
    """

    wraps: list[Wrap] = field(default_factory=list)
    peaks: dict[tuple[str, int], int] = field(default_factory=dict)
    unclear: set[tuple[str, int]] = field(default_factory=set)


def follow(launch: Launch, functions: Mapping[str, Sequence[Function]], followed: Followed) -> None:
    """Run the first and last programs along each axis.

    ``functions`` has those of each name; a call means the one beside it, if there are several.
    """
    ends = [sorted({0, n - 1}) for n in launch.grid]
    for program in itertools.product(*ends) if min(launch.grid, default=0) > 0 else ():
        run = _Program(launch, functions, program, followed)
        run.function(launch.function, launch.scope())


@dataclass
class _Program:
    """One program of a launch."""

    launch: Launch
    functions: Mapping[str, Sequence[Function]]
    number: tuple[int, ...]
    followed: Followed
    depth: int = 0

    def function(self, function: Function, scope: dict[str, Value]) -> Value:
        """What a function returns."""
        frame = _Frame(self, function, scope)
        self.depth += 1
        try:
            frame.statements(function.node.body)
        except _Returned as returned:
            return returned.value
        except (_Undecided, ValueError, IndexError):
            # The last two: shapes that this reading of the source does not bring together.
            frame.unclear(function.node)
            return UNKNOWN
        finally:
            self.depth -= 1
        return None


@dataclass
class _Frame:
    """A function while it runs."""

    run: _Program
    own: Function
    scope: dict[str, Value] = field(default_factory=dict)

    def named(self, name: str) -> Value:
        return self.scope[name] if name in self.scope else self.own.source.constants.get(name, UNKNOWN)

    def program(self, axis: int) -> int:
        return self.run.number[axis]

    def programs(self, axis: int) -> int:
        return self.run.launch.grid[axis]

    def knows(self, name: str) -> bool:
        return name in self.run.functions

    def calls(self, name: str, given: list[Value], keywords: dict[str, Value]) -> Value:
        among = self.run.functions[name]
        beside = [x for x in among if x.source.file == self.own.source.file]
        meant = among if len(among) == 1 else beside
        if len(meant) != 1 or self.run.depth >= _DEPTH:
            for function in among:
                _Frame(self.run, function).unclear(function.node)
            return UNKNOWN
        function = meant[0]
        scope = function.defaults | dict(zip(function.parameters, given, strict=False)) | keywords
        return self.run.function(function, {n: scope.get(n, UNKNOWN) for n in function.parameters})

    def adds(self, node: ast.expr | ast.stmt, by: Number) -> None:
        """Note how large the 32-bit parts of an offset are."""
        place = self.own.source.file, self.own.source.line + node.lineno - 1
        self.run.followed.peaks[place] = max(self.run.followed.peaks.get(place, 0), by.peak)

    def unclear(self, *nodes: ast.AST) -> None:
        """Note that what these lines do is not known."""
        lines = {getattr(x, "lineno", 0) for node in nodes for x in ast.walk(node)}
        source = self.own.source
        self.run.followed.unclear |= {(source.file, source.line + line - 1) for line in lines if line}

    def accesses(self, node: ast.Call, pointer: Pointer, mask: Value, *, store: bool) -> None:
        """Note the furthest lane that goes elsewhere than 64 bits would, though its element is there."""
        active = as_number(mask)
        if active is None:
            return
        exact, actual, lanes = np.broadcast_arrays(pointer.exact, pointer.actual, active.actual)
        memory = pointer.memory
        elsewhere = (exact != actual) & (lanes != 0) & (exact >= -memory.before) & (exact < memory.after)
        if not store:
            # What is read from inside the tensor may go unused.
            elsewhere &= (actual < -memory.before) | (actual >= memory.after)
        if not elsewhere.any():
            return
        at = np.unravel_index(np.argmax(np.where(elsewhere, exact, -memory.before - 1)), exact.shape)
        source, line = self.own.source, pointer.line or node.lineno
        self.run.followed.wraps.append(
            Wrap(
                source.name,
                source.file,
                source.line + line - 1,
                pointer.text,
                memory.name,
                int(exact[at]),
                int(actual[at]),
                self.run.number,
                store,
            )
        )

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = evaluate(node.value, self)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, evaluate(node.value, self))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = ast.Name(node.target.id, ast.Load())
            self._assign(
                node.target, evaluate(ast.copy_location(ast.BinOp(name, node.op, node.value), node), self)
            )
        elif isinstance(node, ast.Return):
            raise _Returned(None if node.value is None else evaluate(node.value, self))
        elif isinstance(node, ast.If):
            self._branch(node)
        elif isinstance(node, ast.For):
            self._loop(node)
        elif isinstance(node, ast.Expr):
            evaluate(node.value, self)
        elif not isinstance(node, ast.Pass | ast.Assert):
            self._forget([node])

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.scope[target.id] = value
        elif isinstance(target, ast.Tuple):
            known = isinstance(value, tuple) and len(value) == len(target.elts)
            for i, own in enumerate(target.elts):
                self._assign(own, value[i] if known else UNKNOWN)

    def _branch(self, node: ast.If) -> None:
        decided = truth(evaluate(node.test, self))
        if decided is None:
            self._forget([*node.body, *node.orelse])
        else:
            self.statements(node.body if decided else node.orelse)

    def _forget(self, body: Sequence[ast.stmt]) -> None:
        """What may or may not have run leaves nothing known behind."""
        self.unclear(*body)
        if any(isinstance(x, ast.Return | ast.Break | ast.Continue) for part in body for x in ast.walk(part)):
            raise _Undecided
        for name in _assigned(body):
            self.scope[name] = UNKNOWN

    def _loop(self, node: ast.For) -> None:
        """Every round of a short loop; the first and the last of a long one."""
        call = node.iter
        kind = called_name(call) if isinstance(call, ast.Call) else ""
        ends = [as_number(evaluate(x, self)) for x in call.args] if isinstance(call, ast.Call) else []
        known = [int(x.actual.reshape(-1)[0]) for x in ends if x is not None and x.actual.size == 1]
        if kind not in ("range", "static_range") or len(known) != len(ends) or known[2:] == [0]:
            self._forget([node])
            return
        static, rounds = kind == "static_range", range(*known)
        bits = max(x.bits for x in ends if x is not None)

        def turn(i: int) -> None:
            self._assign(node.target, rounds[i] if static else scalar(rounds[i], bits))
            self.statements(node.body)

        if len(rounds) <= (_UNROLLED_STATICALLY if static else _UNROLLED):
            for i in range(len(rounds)):
                turn(i)
            return
        before = dict(self.scope)
        turn(0)
        if any(isinstance(x, ast.Return | ast.Break | ast.Continue) for x in ast.walk(node)):
            self._forget([node])
        own = _assigned(node.body)
        self.scope = before | {name: self._later(before, name, node.body, len(rounds) - 1) for name in own}
        turn(-1)

    def _later(self, before: Mapping[str, Value], name: str, body: Sequence[ast.stmt], rounds: int) -> Value:
        """What so many rounds make of a name, if each adds the same to it; unknown otherwise."""
        places = [x for part in body for x in ast.walk(part) if isinstance(x, ast.stmt) and name in _given(x)]
        steps = [x for x in body if isinstance(x, ast.AugAssign) and x in places]
        value, moving = before.get(name, UNKNOWN), _assigned(body)
        if len(steps) != len(places) or isinstance(value, Unknown):
            return UNKNOWN
        for step in steps:
            used = {x.id for x in ast.walk(step.value) if isinstance(x, ast.Name)}
            by = as_number(evaluate(step.value, self)) if not used & moving else None
            sign = {"Add": 1, "Sub": -1}.get(type(step.op).__name__)
            if by is None or sign is None:
                return UNKNOWN
            value = _moved(value, by, sign * rounds, step)
        return value


def _moved(value: Value, by: Number, times: int, step: ast.AugAssign) -> Value:
    """A pointer or number after so many equal steps."""
    if isinstance(value, Pointer):
        # The address is wide: only the step itself can have wrapped.
        far = Number(by.exact * times, by.actual * times, 64)
        return value.moved(far, 1, step.lineno, ast.unparse(step))
    sum_ = operation("Add", value, by)
    start = as_number(value)
    if not isinstance(sum_, Number) or start is None:
        return UNKNOWN
    actual = wrapped(start.actual + by.actual * times, sum_.bits, sum_.signed)
    return Number(start.exact + by.exact * times, actual, sum_.bits, sum_.signed)


def _assigned(body: Sequence[ast.AST]) -> set[str]:
    """The names that some statements give a value."""
    nodes = (node for part in body for node in ast.walk(part))
    return {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}


def _given(node: ast.stmt) -> set[str]:
    """The names that a statement itself gives a value, not one inside it."""
    own = [getattr(node, "target", None), *getattr(node, "targets", [])]
    return _assigned([x for x in own if x is not None])
