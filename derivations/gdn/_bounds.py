"""Strict bounds on explicit numbers as obligations, judged by interval arithmetic."""

from typing import Any

from sympy import Expr, Symbol

from verify.derive.tree import tree
from verify.model.evidence import Obligation


def bounded(
    label: str, term: Expr, values: dict[Symbol, Any], strength: str = "B", **bounds: str
) -> Obligation:
    """The obligation that a term lies strictly above and below the stated rationals.

    Args:
        label: what the bounds show, in plain words.
        term: the number, with variables.
        values: a rational for each variable, as an integer or text.
        strength: ``"E"`` where the term is rational, so that its value is exact, else ``"B"``.
        bounds: ``above``, ``below`` or both.
    """
    named = {symbol.name: str(value) for symbol, value in values.items()}
    return Obligation("inequality", label, strength, {"term": tree(term), "values": named, **bounds})
