"""The source of Triton kernels, parsed, and which of their names are pointers."""

import ast
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

_ACCESSES = ("load", "store", "make_block_ptr", "make_tensor_descriptor")


@dataclass(frozen=True)
class Source:
    """The source of one kernel or device function, where its first line stands, and its global numbers."""

    name: str
    file: str
    line: int
    text: str
    constants: Mapping[str, int | str | bool | None] = field(default_factory=dict)


class Function:
    """A parsed source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        tree = ast.parse(textwrap.dedent(source.text))
        self.node = next(x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef))
        arguments = [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]
        self.parameters = [a.arg for a in arguments]
        self.constants = {
            a.arg for a in arguments if a.annotation and "constexpr" in ast.unparse(a.annotation)
        }
        self.bits = {
            a.arg: 64
            for a in arguments
            if a.annotation and ast.unparse(a.annotation).rpartition(".")[2] in ("int64", "uint64")
        }
        last = self.node.args
        values = [*zip([a.arg for a in last.args[::-1]], last.defaults[::-1], strict=False)]
        values += [(a.arg, x) for a, x in zip(last.kwonlyargs, last.kw_defaults, strict=True) if x]
        self.defaults = {name: x.value for name, x in values if isinstance(x, ast.Constant)}
        self.pointers = self._through(is_access)
        self.written = self._through(_may_write)

    def _through(self, uses: Callable[[ast.Call], bool]) -> set[str]:
        """The names that such calls get at memory through, found backwards from the calls."""
        found: set[str] = set()
        grown = True
        while grown:
            before = len(found)
            for node in ast.walk(self.node):
                if isinstance(node, ast.Call) and uses(node):
                    # An access takes its pointer first; a device function may write through any argument.
                    for argument in node.args[:1] if is_access(node) else node.args:
                        found.update(_bases(argument))
                targets = node.targets if isinstance(node, ast.Assign) else []
                if any(isinstance(t, ast.Name) and t.id in found for t in targets):
                    assert isinstance(node, ast.Assign)
                    found.update(_bases(node.value))
            grown = len(found) > before
        return found - self.constants


def called_name(node: ast.Call) -> str:
    """The last part of what is called."""
    return ast.unparse(node.func).rpartition(".")[2]


def is_access(node: ast.Call) -> bool:
    """Whether a call reads or writes memory, or makes what does."""
    return called_name(node) in _ACCESSES or is_store(node)


def is_store(node: ast.Call) -> bool:
    return called_name(node) == "store" or called_name(node).startswith("atomic_")


def _may_write(node: ast.Call) -> bool:
    return called_name(node) != "load"


def _bases(node: ast.expr) -> Iterator[str]:
    """The leftmost name of a sum, which is the pointer."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        node = node.left
    if isinstance(node, ast.Name):
        yield node.id
    if isinstance(node, ast.IfExp):
        yield from (*_bases(node.body), *_bases(node.orelse))
