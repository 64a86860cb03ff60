"""Histories through the centred delta rule: the states, eigenvalues and outputs a witness states."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sympy import Expr, Symbol

from verify.derive.tree import tree
from verify.model.evidence import Obligation
from verify.numbers.convert import Number
from verify.numbers.exact import Exact

EXACT = Exact()


def states(
    keys: Sequence[Sequence[Number]], values: Sequence[Sequence[Number]], *, erase: bool = True
) -> list[Any]:
    """S_1 … S_T (K×V each) of S_t = [(1 − 1/t)I − (1/t)κκᵀ]S_{t−1} + (1/t)κ(v_t − v̄_{t−1})ᵀ.

    Args:
        keys: T×K.
        values: T×V.
        erase: whether the term with κκᵀ is there.
    """
    columns = [EXACT.matrix([[entry] for entry in key]) for key in keys]
    contents = [EXACT.matrix([[entry] for entry in value]) for value in values]
    state, found = EXACT.zeros(len(keys[0]), len(values[0])), []
    mean_key, mean_value = EXACT.zeros(len(keys[0]), 1), EXACT.zeros(len(values[0]), 1)
    for time, (key, value) in enumerate(zip(columns, contents, strict=True), start=1):
        share = EXACT.number(Fraction(1, time))
        mean_key = EXACT.add(mean_key, EXACT.scale(share, EXACT.sub(key, mean_key)))
        centred = EXACT.sub(key, mean_key)
        transition = EXACT.scale(EXACT.number(Fraction(time - 1, time)), EXACT.eye(len(keys[0])))
        if erase:
            transition = EXACT.sub(transition, EXACT.scale(share, EXACT.outer(centred, centred)))
        write = EXACT.scale(share, EXACT.outer(centred, EXACT.sub(value, mean_value)))
        state = EXACT.add(EXACT.matmul(transition, state), write)
        mean_value = EXACT.add(mean_value, EXACT.scale(share, EXACT.sub(value, mean_value)))
        found.append(state)
    return found


def history(
    label: str,
    keys: Sequence[Sequence[Number]],
    values: Sequence[Sequence[Number]],
    *,
    erase: bool = True,
    **stated: Any,
) -> Obligation:
    """The obligation that a history has the states computed here, and whatever else is ``stated``."""
    found = [
        [[str(entry) for entry in row] for row in EXACT.to_lists(state)]
        for state in states(keys, values, erase=erase)
    ]
    data = {
        "keys": [[str(entry) for entry in key] for key in keys],
        "values": [[str(entry) for entry in value] for value in values],
        "erase": erase,
        "states": found,
        **stated,
    }
    return Obligation("centred-delta", label, "E", data)


def bounded(label: str, term: Expr, values: dict[Symbol, Any], strength: str, **bounds: str) -> Obligation:
    """The obligation that a term lies strictly above and below the stated rationals.

    Args:
        label: what the bounds show, in plain words.
        term: the number, with variables.
        values: a rational for each variable.
        strength: ``"E"`` where the term is rational, so that its value is exact, else ``"B"``.
        bounds: ``above``, ``below`` or both.
    """
    named = {symbol.name: str(value) for symbol, value in values.items()}
    return Obligation("inequality", label, strength, {"term": tree(term), "values": named, **bounds})
