"""Inequalities between integer expressions: what follows from stated ones by adding a few of them up."""

from collections.abc import Mapping
from typing import Any

from verify.checkers.normal_form import NormalForm
from verify.checkers.polynomials import Polynomial, add, constant, multiply
from verify.checkers.terms import ONE, Term, minus, read

DEPTH = 4
"""How many stated inequalities may be added up."""

Scopes = Mapping[str, tuple[Polynomial, Polynomial]]


def mentions(polynomial: Polynomial, name: str) -> bool:
    """Whether a variable occurs, be it inside an index."""
    return any(f"<{name}>" in atom for monomial in polynomial for atom, _ in monomial)


def _difference(high: Polynomial, low: Polynomial) -> Polynomial:
    return add(high, multiply(constant(-1), low))


class Ordering:
    """Facts ``f >= 0`` about integers, and the limits of the sums around the place that is asked about.

    Attributes:
        facts: expressions that are >= 0.
        scopes: lower and upper limit of each bound variable; nothing follows from them for expressions that
            do not lead to that variable, since its sum may be empty.
    """

    def __init__(self, facts: list[Polynomial], scopes: Scopes) -> None:
        self.facts = facts
        self.scopes = dict(scopes)

    @classmethod
    def of(cls, setting: dict[str, Any]) -> "Ordering":
        """The facts of a setting: ``order`` holds pairs a <= b, ``nonempty`` holds expressions >= 1."""
        pairs = [(read(low), read(high)) for low, high in setting["order"]]
        pairs += [(ONE, read(limit)) for limit in setting["nonempty"]]
        return cls([NormalForm().of(minus(high, low)) for low, high in pairs], {})

    def inside(self, bound: str, lower: Term, upper: Term) -> "Ordering":
        """The facts in the summand of a sum; those on an outer variable of the same name are dropped."""
        forms = NormalForm()
        limits = forms.of(lower), forms.of(upper)
        facts = [fact for fact in self.facts if not mentions(fact, bound)]
        scopes = {
            name: pair
            for name, pair in self.scopes.items()
            if name != bound and not any(mentions(limit, bound) for limit in pair)
        }
        if not any(mentions(limit, bound) for limit in limits):
            scopes[bound] = limits
        return Ordering(facts, scopes)

    def at_most(self, low: Term, high: Term) -> bool:
        """Whether ``low <= high`` is certain."""
        return self.nonnegative(NormalForm().of(minus(high, low)))

    def nonnegative(self, value: Polynomial) -> bool:
        """Whether an integer expression is certainly >= 0."""
        return self._follows(value, [*self.facts, *self._scoped(value)], DEPTH)

    def _scoped(self, value: Polynomial) -> list[Polynomial]:
        facts: list[Polynomial] = []
        reached: set[str] = set()
        waiting = [name for name in self.scopes if mentions(value, name)]
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            low, high = self.scopes[name]
            itself = NormalForm().of(("v", name))
            facts += [_difference(itself, low), _difference(high, itself)]
            waiting += [other for other in self.scopes if mentions(low, other) or mentions(high, other)]
        return facts

    def _follows(self, value: Polynomial, facts: list[Polynomial], depth: int) -> bool:
        if not value or set(value) == {()}:
            return value.get((), 0) >= 0
        shared = [fact for fact in facts if depth and any(m in value for m in fact if m)]
        return any(self._follows(_difference(value, fact), facts, depth - 1) for fact in shared)
