"""Steps written out at concrete sizes: every sum in full, every index a number.

Engines look at a derivation this way, so that nothing here is shared with the checker's symbolic sums:
definitions are unfolded with their indices known, and derivatives are taken by dual numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from verify.derive.tree import Tree
from verify.model.errors import RequestError

Scalar = Any
"""A number of whatever system is used: it has + − · / and integer powers."""


@dataclass(frozen=True)
class Dual:
    """A value with its derivative in one variable."""

    value: Scalar
    slope: Scalar

    def __add__(self, other: "Dual") -> "Dual":
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: "Dual") -> "Dual":
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def reciprocal(self) -> "Dual":
        """1/x."""
        return Dual(1 / self.value, -self.slope / (self.value * self.value))


@dataclass(frozen=True)
class World:
    """How to evaluate formulas: a number system, sizes, and values for everything else.

    Attributes:
        number: makes a scalar from a fraction string.
        exp: the exponential of a scalar; ``None`` where the system has none.
        log: the logarithm of a scalar; ``None`` where the system has none.
        value: the scalar of a variable or of a member, by its written-out name, e.g. ``"a[2]"``.
        sizes: integer values of sizes and indices, bound ones included.
        outside: those of ``sizes`` that no sum binds; what a definition's fixed names mean.
        active: definitions still to unfold, in order.
        variable: written-out name of the variable of differentiation, if any.
    """

    number: Callable[[str], Scalar]
    exp: Callable[[Scalar], Scalar] | None
    log: Callable[[Scalar], Scalar] | None
    value: Callable[[str], Scalar]
    sizes: dict[str, int]
    outside: dict[str, int] = field(default_factory=dict)
    active: tuple[dict[str, Any], ...] = ()
    variable: str | None = None

    def evaluate(self, tree: Tree) -> Dual:
        """The value of a formula and its derivative in ``variable`` (zero when there is none)."""
        head, *rest = tree
        if head == "q":
            return Dual(self.number(rest[0]), self.number("0"))
        if head in ("v", "at"):
            return self._named(tree)
        if head in ("+", "*"):
            parts = [self.evaluate(item) for item in rest]
            total = parts[0]
            for part in parts[1:]:
                total = total + part if head == "+" else total * part
            return total
        if head == "^":
            return self._power(self.evaluate(rest[0]), rest[1])
        if head in ("exp", "log"):
            return self._function(head, self.evaluate(rest[0]))
        bound, lower, upper, body = rest
        total = Dual(self.number("0"), self.number("0"))
        for index in range(self.integer(lower), self.integer(upper) + 1):
            total = total + replace(self, sizes={**self.sizes, bound: index}).evaluate(body)
        return total

    def integer(self, tree: Tree) -> int:
        """The value of an index expression."""
        head, *rest = tree
        if head == "q":
            return int(rest[0])
        if head == "v" and rest[0] in self.sizes:
            return self.sizes[rest[0]]
        if head == "+":
            return sum(self.integer(item) for item in rest)
        if head == "*":
            product = 1
            for item in rest:
                product *= self.integer(item)
            return product
        raise RequestError(f"the instances of the derivation give no value to the index {tree}")

    def name(self, tree: Tree) -> str:
        """The written-out name of a variable or member."""
        if tree[0] == "v":
            return str(tree[1])
        return f"{tree[1]}[{','.join(str(self.integer(index)) for index in tree[2])}]"

    def _named(self, tree: Tree) -> Dual:
        if tree[0] == "v" and tree[1] in self.sizes:
            return Dual(self.number(str(self.sizes[tree[1]])), self.number("0"))
        for place, definition in enumerate(self.active):
            values = self._match(tree, definition)
            if values is not None:
                sizes = {**self.outside, **values}
                later = replace(self, sizes=sizes, active=self.active[place + 1 :])
                return later.evaluate(definition["rhs"])
        name = self.name(tree)
        return Dual(self.value(name), self.number("1" if name == self.variable else "0"))

    def _match(self, tree: Tree, definition: dict[str, Any]) -> dict[str, int] | None:
        pattern = definition["lhs"]
        if tree[0] != pattern[0] or tree[1] != pattern[1]:
            return None
        values: dict[str, int] = {}
        top = replace(self, sizes=self.outside)
        if tree[0] == "at":
            if len(tree[2]) != len(pattern[2]):
                return None
            for given, wanted in zip(tree[2], pattern[2], strict=True):
                index = self.integer(given)
                if wanted[0] == "v" and wanted[1] in definition["free"]:
                    if values.setdefault(wanted[1], index) != index:
                        return None
                elif top.integer(wanted) != index:
                    return None
        inside = replace(self, sizes={**self.outside, **values})
        within = all(values[name] <= inside.integer(limit) for name, limit in definition["guards"])
        return values if within else None

    def _power(self, base: Dual, exponent: int) -> Dual:
        if exponent < 0:
            base = base.reciprocal()
        result = Dual(self.number("1"), self.number("0"))
        for _ in range(abs(exponent)):
            result = result * base
        return result

    def _function(self, head: str, inner: Dual) -> Dual:
        function = self.exp if head == "exp" else self.log
        if function is None:
            raise RequestError(f"this number system has no {head}")
        value = function(inner.value)
        slope = inner.slope * value if head == "exp" else inner.slope / inner.value
        return Dual(value, slope)


def chains(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The chains of a derivation or an induction."""
    return [data["base"], data["step"]] if "base" in data else [data]


def uses_functions(data: Any) -> bool:
    """Whether exp or log occurs anywhere in a chain's data, or a rule applies one."""
    if isinstance(data, dict):
        applied = data.get("rule") in ("logarithm", "exponentiate") and bool(data["uses"])
        return applied or any(uses_functions(item) for item in data.values())
    if not isinstance(data, list):
        return False
    return (bool(data) and data[0] in ("exp", "log")) or any(uses_functions(item) for item in data)


@dataclass(frozen=True)
class Residual:
    """What must vanish for one step at one instance, and what must be >= 0."""

    label: str
    value: Scalar
    terms: tuple[Scalar, ...]


def residuals(chain: dict[str, Any], world: World) -> Iterator[Residual]:
    """For every step of a chain: before − after − dropped terms − combination of hypotheses.

    Args:
        chain: one chain's data.
        world: number system, values and sizes; the definitions to unfold are set here.
    """
    setting = chain["setting"]
    definitions = {item["name"]: item for item in setting["definitions"]}
    hypotheses = {item["name"]: item for item in setting["hypotheses"]}
    world = replace(world, outside=world.sizes)
    for step in chain["steps"]:
        there = replace(world, active=tuple(definitions[name] for name in step["unfold"]))
        before, after = there.evaluate(step["before"]).value, there.evaluate(step["after"]).value
        if step["variable"] is not None:
            moved = replace(there, variable=world.name(step["variable"]))
            before = moved.evaluate(step["before"]).slope
        if step["uses"] and step["rule"] in ("logarithm", "exponentiate"):
            outer = world.exp if step["rule"] == "logarithm" else world.log
            if outer is None:
                raise RequestError("this number system has no exp or log")
            before, after = outer(before), outer(after)
        terms = tuple(world.evaluate(term).value for term in step["terms"])
        rest = before - after
        for term in terms:
            rest = rest - term
        for name, multiplier in step["uses"]:
            equation = hypotheses[name]
            gap = world.evaluate(equation["lhs"]).value - world.evaluate(equation["rhs"]).value
            rest = rest - world.evaluate(multiplier).value * gap
        yield Residual(f"«{step['label']}»", rest, terms)
