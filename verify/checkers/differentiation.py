"""Derivatives of terms: the rules for sums, products, powers, exp and log, and for members of families."""

from dataclasses import dataclass, replace

from verify.checkers.ordering import Ordering
from verify.checkers.terms import (
    ONE,
    ZERO,
    IllFormed,
    Term,
    children,
    free_variables,
    plus,
    substitute,
    times,
)


@dataclass(frozen=True)
class Differentiation:
    """The derivative in a variable ``("v", x)`` or in one member ``("at", a, (k,))`` of a family.

    Other members are independent of ``a[k]``; that an index differs from ``k`` must be known. A sum over
    the family's index picks the summand with index ``k``, which must be known to lie in the range or outside.

    Attributes:
        variable: what is differentiated by.
        distinct: pairs of index names that denote different members.
        ordering: what is known about indices.
        written: only members written with exactly the variable's index count. The summand that a sum over
            the family picks is differentiated so: what sums inside it hold is in the other part already.
    """

    variable: Term
    distinct: frozenset[frozenset[str]]
    ordering: Ordering
    written: bool = False

    def of(self, term: Term) -> Term:
        """The derivative of a term."""
        head = term[0]
        if term == self.variable:
            return ONE
        if head == "at":
            return self._other_member(term)
        if head in ("q", "v"):
            return ZERO
        if head == "+":
            return plus(*(self.of(item) for item in term[1:]))
        if head == "*":
            factors = list(enumerate(term[1:], start=1))
            return plus(*(times(*term[1:at], self.of(item), *term[at + 1 :]) for at, item in factors))
        if head == "sum":
            return self._sum(term)
        inner = self.of(term[1])
        if head == "^":
            return times(("q", str(term[2])), ("^", term[1], term[2] - 1), inner)
        return times(term, inner) if head == "exp" else times(inner, ("^", term[1], -1))

    def _other_member(self, term: Term) -> Term:
        self._constant(term[2])
        if not self.written and self.variable[0] == "at" and term[1] == self.variable[1]:
            pairs = zip(term[2], self.variable[2], strict=False)
            differ = len(term[2]) != len(self.variable[2]) or any(self._apart(*pair) for pair in pairs)
            if not differ:
                raise IllFormed(f"nothing says that {term} and {self.variable} are different members")
        return ZERO

    def _apart(self, one: Term, other: Term) -> bool:
        if one[0] == other[0] == "v" and frozenset({one[1], other[1]}) in self.distinct:
            return one != other
        following = [(plus(low, ONE), high) for low, high in ((one, other), (other, one))]
        return any(self.ordering.at_most(low, high) for low, high in following)

    def _constant(self, terms: tuple[Term, ...]) -> None:
        for term in terms:
            if self.variable[0] == "v" and self.variable[1] in free_variables(term):
                raise IllFormed(f"{self.variable[1]} is an index or a limit: there is no derivative in it")
            if self.variable[0] == "at" and _holds(term, self.variable[1]):
                raise IllFormed(f"a member of {self.variable[1]} is an index or a limit")

    def _sum(self, term: Term) -> Term:
        _, bound, lower, upper, body = term
        self._constant((lower, upper))
        if bound in free_variables(self.variable):
            raise IllFormed(f"the sum binds {bound}, which the variable of differentiation uses")
        known = self.ordering.inside(bound, lower, upper)
        clean = frozenset(pair for pair in self.distinct if bound not in pair)
        if self.variable[0] == "v" or self.written:
            return ("sum", bound, lower, upper, replace(self, distinct=clean, ordering=known).of(body))
        if len(self.variable[2]) != 1 or self.variable[2][0][0] != "v":
            if _holds(body, self.variable[1]):
                raise IllFormed(
                    f"a sum of members of {self.variable[1]}, and {self.variable} is not of the form a[k]"
                )
            return ZERO
        family, (index,) = self.variable[1], self.variable[2]
        apart = replace(self, distinct=clean | {frozenset({bound, index[1]})}, ordering=known)
        direct = ("sum", bound, lower, upper, apart.of(body))
        if self.ordering.at_most(plus(index, ONE), lower) or self.ordering.at_most(plus(upper, ONE), index):
            return direct
        member: Term = ("at", family, (("v", bound),))
        picked = replace(apart, variable=member, written=True).of(body)
        if picked_vanishes(picked):
            return direct
        if not (self.ordering.at_most(lower, index) and self.ordering.at_most(index, upper)):
            raise IllFormed(f"nothing says that {index[1]} lies in the range of the sum over {bound}")
        return plus(direct, substitute(picked, bound, index))


def picked_vanishes(term: Term) -> bool:
    """Whether a derivative is zero as it is written, since the family does not occur."""
    head = term[0]
    if head == "*":
        return any(picked_vanishes(item) for item in term[1:])
    if head == "+":
        return all(picked_vanishes(item) for item in term[1:])
    return picked_vanishes(term[4]) if head == "sum" else term == ZERO


def _holds(term: Term, family: str) -> bool:
    return (term[0] == "at" and term[1] == family) or any(_holds(item, family) for item in children(term))
