"""Certificates of the form Σ c_i e_i = target: whenever all e_i vanish, so does the target.

Data: ``equations`` e_i, ``multipliers`` c_i and ``target``, all terms (see ``terms.py``) without division,
exp, log or sums, so that the identity holds for every value of the variables.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.normal_form import NormalForm
from verify.checkers.polynomials import key
from verify.checkers.reading import Wrong, word
from verify.checkers.terms import IllFormed, Term, children, minus, plus, read, times
from verify.model.evidence import Check, Obligation

NAME = "certificate checker"
KINDS = frozenset({"polynomial-certificate"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the combination is the target, as polynomials over the rationals."""
    return word(NAME, obligation, _certificate)


def _certificate(data: Mapping[str, Any]) -> str:
    equations, multipliers = ([read(item) for item in data[name]] for name in ("equations", "multipliers"))
    target = read(data["target"])
    if len(equations) != len(multipliers):
        raise Wrong(f"{len(equations)} equations and {len(multipliers)} multipliers")
    for term in (*equations, *multipliers, target):
        _polynomial(term)
    combined = plus(*(times(c, e) for c, e in zip(multipliers, equations, strict=True)))
    rest = NormalForm().of(minus(combined, target))
    if rest:
        raise Wrong(f"the combination minus the target is not 0 but {key(rest)}")
    return f"{len(equations)} equations combine to the target identically"


def _polynomial(term: Term) -> None:
    if term[0] in ("exp", "log", "sum") or (term[0] == "^" and term[2] < 0):
        raise IllFormed(f"{term[0]!r} has no place in a polynomial")
    for item in children(term):
        _polynomial(item)
