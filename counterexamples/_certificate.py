"""Nullstellensatz certificates as obligations: a target written as a combination of what must vanish."""

from sympy import Expr

from verify.derive.tree import tree
from verify.model.evidence import Obligation


def combination(label: str, target: Expr | int, terms: tuple[tuple[Expr | int, Expr], ...]) -> Obligation:
    """The obligation that ``target`` = Σ multiplier · equation identically.

    Args:
        label: what follows, in plain words.
        target: a polynomial with rational coefficients; 1 when the equations contradict one another.
        terms: pairs (multiplier, equation).
    """
    data = {
        "equations": [tree(equation) for _, equation in terms],
        "multipliers": [tree(multiplier) for multiplier, _ in terms],
        "target": tree(target),
    }
    return Obligation("polynomial-certificate", label, "E", data)
