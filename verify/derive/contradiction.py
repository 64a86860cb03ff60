"""Certificates beside solver statements: why the assertions of an SMT-LIB text contradict one another."""

from collections.abc import Sequence
from typing import Any

from verify.model.evidence import Obligation


def term(*literals: int, times: str = "1", square: str | None = None) -> dict[str, Any]:
    """The product of the literals with these numbers (from 0, in their branch), ``times`` and ``square``².

    ``times`` and ``square`` are SMT-LIB terms; without an equation among the literals ``times`` must be a
    positive number.
    """
    return {"of": list(literals), "times": times} | ({} if square is None else {"square": square})


def contradiction(query: Obligation, *cases: Sequence[dict[str, Any]]) -> Obligation:
    """The obligation that each branch of a query is refuted by a sum of terms: 0, although it is positive.

    Args:
        query: an ``smt`` obligation, expected to be unsatisfiable.
        cases: the terms of each branch, in the order of its disjunctions.
    """
    data = {"smtlib": query.data["smtlib"], "cases": [list(case) for case in cases]}
    return Obligation("positivstellensatz", f"{query.label}: by a sum of signs", "E", data)
