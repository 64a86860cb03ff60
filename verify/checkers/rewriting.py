"""The rewriting a step may do before its two sides are compared: unfold definitions, cut sums."""

from typing import Any

from verify.checkers.normal_form import NormalForm
from verify.checkers.ordering import Ordering
from verify.checkers.terms import (
    ONE,
    ZERO,
    IllFormed,
    Term,
    free_variables,
    minus,
    plus,
    read,
    rebuild,
    substitute,
    times,
)


class Unfolding:
    """Replaces every instance of a definition's left side, once, from the outside in.

    Free indices may take any value within their guards; every other variable of the definition means the
    one outside all sums, so that nothing is replaced inside a sum that binds such a name.

    Args:
        definition: ``lhs``, ``rhs``, ``free`` indices and ``guards`` as in the certificate.
    """

    def __init__(self, definition: dict[str, Any]) -> None:
        self.lhs, self.rhs = read(definition["lhs"]), read(definition["rhs"])
        self.free = list(definition["free"])
        self.guards = [(name, read(limit)) for name, limit in definition["guards"]]
        if self.lhs[0] not in ("v", "at") or any(name not in self.free for name, _ in self.guards):
            raise IllFormed(
                "a definition needs a variable or a member of a family, and guards on free indices"
            )
        if any(("v", name) not in self.lhs[2:][0] for name in self.free):
            raise IllFormed("every free index of a definition must be an index of its left side")
        limits = (limit for _, limit in self.guards)
        names = free_variables(self.lhs).union(*(free_variables(term) for term in (self.rhs, *limits)))
        self.fixed = names - set(self.free)

    def of(self, term: Term, known: Ordering) -> Term:
        """The term with the definition unfolded where ``known`` holds."""
        values = self._match(term)
        if values is not None and all(self._within(values, *guard, known) for guard in self.guards):
            return _instantiate(self.rhs, values)
        if term[0] == "sum":
            _, bound, lower, upper, body = term
            if bound not in self.fixed:
                body = self.of(body, known.inside(bound, lower, upper))
            return ("sum", bound, self.of(lower, known), self.of(upper, known), body)
        return rebuild(term, lambda item: self.of(item, known))

    def _match(self, term: Term) -> dict[str, Term] | None:
        if self.lhs[0] == "v":
            return {} if term == self.lhs else None
        if term[:2] != self.lhs[:2] or len(term[2]) != len(self.lhs[2]):
            return None
        values: dict[str, Term] = {}
        for index, wanted in zip(term[2], self.lhs[2], strict=True):
            if wanted[0] == "v" and wanted[1] in self.free:
                if not _equal(values.setdefault(wanted[1], index), index):
                    return None
            elif not _equal(index, wanted):
                return None
        return values

    def _within(self, values: dict[str, Term], name: str, limit: Term, known: Ordering) -> bool:
        return known.at_most(values[name], _instantiate(limit, values))


def _equal(one: Term, other: Term) -> bool:
    return not NormalForm().of(minus(one, other))


def _instantiate(term: Term, values: dict[str, Term]) -> Term:
    # Through fresh names, so that one value may mention the name of another free index.
    for place, name in enumerate(values):
        term = substitute(term, name, ("v", f"?{place}"))
    for place, value in enumerate(values.values()):
        term = substitute(term, f"?{place}", value)
    return term


def split(term: Term, limit: Term, at: Term, known: Ordering) -> Term:
    """Cut every sum whose upper limit is ``limit`` into one up to ``at`` and one from ``at + 1``.

    Both parts must be known to be sums proper: lower limit <= at + 1 and at <= limit, by what is known where
    the sum stands.
    """
    if term[0] != "sum":
        return rebuild(term, lambda item: split(item, limit, at, known))
    _, bound, lower, upper, body = term
    body = split(body, limit, at, known.inside(bound, lower, upper))
    if not _equal(upper, limit):
        return ("sum", bound, lower, upper, body)
    following = plus(at, ONE)
    if not (known.at_most(lower, following) and known.at_most(at, upper)):
        raise IllFormed(f"nothing says that {at} lies in the range of the sum over {bound}")
    return plus(("sum", bound, lower, at, body), ("sum", bound, following, upper, body))


def combination(uses: list[Any], hypotheses: dict[str, dict[str, Any]]) -> Term:
    """The stated sum of multiplier · (lhs − rhs)."""
    total: Term = ZERO
    for name, multiplier in uses:
        if name not in hypotheses:
            raise IllFormed(f"no hypothesis is called {name!r}")
        equation = hypotheses[name]
        difference = minus(read(equation["lhs"]), read(equation["rhs"]))
        total = plus(total, times(read(multiplier), difference))
    return total
