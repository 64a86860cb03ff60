"""Certificates that an SMT-LIB statement over the reals has no solution, from its very text.

Data: ``smtlib``, the text that the solvers read, and ``cases``. The assertions are brought into disjunctive
normal form here; each branch is a list of literals p = 0, p >= 0, p > 0 or p ≠ 0 (counted from 0), and has
one entry of ``cases``: a sum of terms that is the zero polynomial although some term is positive and none
negative. A term is {"of": [literals], "times": c, "square": s}: the product of its literals' polynomials
times c·s². With an equation among its literals it is 0, and c may be any polynomial; otherwise c must be a
positive number and p ≠ 0 must occur an even number of times. It is positive when it has no ``square`` and its
literals are strict. c and s are SMT-LIB terms, 1 when left out. Integers are treated as reals.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.polynomials import Polynomial, add, multiply
from verify.checkers.reading import Wrong, natural, word
from verify.checkers.smt_text import Literal, branches, polynomial
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "sign certificate"
KINDS = frozenset({"positivstellensatz"})
LARGEST = 64
"""Most branches that are treated."""


def judge(obligation: Obligation) -> Check:
    """``proved`` when every branch of the assertions contradicts itself by its certificate."""
    return word(NAME, obligation, _infeasible)


def _infeasible(data: Mapping[str, Any]) -> str:
    found, cases = branches(data["smtlib"], LARGEST), data["cases"]
    if len(cases) != len(found):
        raise Wrong(f"{len(cases)} certificates for {len(found)} branches")
    for place, (literals, terms) in enumerate(zip(found, cases, strict=True), 1):
        _contradiction(literals, terms, f"branch {place}")
    return (
        f"{len(found)} {'branches contradict themselves' if len(found) > 1 else 'branch contradicts itself'}"
    )


def _contradiction(literals: list[Literal], terms: Any, where: str) -> None:
    total: Polynomial = {}
    positive = False
    for term in terms:
        value, strict = _term(literals, term)
        total, positive = add(total, value), positive or strict
    if total:
        raise Wrong(f"the sum of {where} is not 0")
    if not positive:
        raise Wrong(f"no term of {where} is positive")


def _term(literals: list[Literal], term: Mapping[str, Any]) -> tuple[Polynomial, bool]:
    """The term's polynomial, and whether it is certainly positive; otherwise it is certainly not negative."""
    if not isinstance(term, Mapping) or set(term) - {"of", "times", "square"}:
        raise IllFormed(f"{term!r} is no term of a certificate")
    chosen = [literals[natural(place)] for place in term["of"]]
    factor, square = (polynomial(term.get(name, "1")) for name in ("times", "square"))
    value = multiply(factor, multiply(square, square))
    for literal in chosen:
        value = multiply(value, literal.polynomial)
    if any(literal.relation == "=" for literal in chosen):
        return value, False
    if set(factor) != {()} or factor[()] <= 0:
        raise Wrong("a term without an equation is scaled by something else than a positive number")
    for literal in chosen:
        if literal.relation == "!=" and chosen.count(literal) % 2:
            raise Wrong("p ≠ 0 says nothing about the sign of an odd power of p")
    return value, "square" not in term and all(literal.relation != ">=" for literal in chosen)
