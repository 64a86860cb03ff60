"""The adjoints of the mechanisms' definitions, evaluated in any number system, head by head."""

from typing import Any

import numpy as np

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.gradient import adjoint, directed_adjoint
from verify.audit.gradient.functional import Cotangent, gathered, row_axes
from verify.audit.reference.definition import decays, visibility


def evaluate(case: Case, functional: Cotangent, numbers: Any) -> dict[str, Any]:
    """The gradients in the scalars of a number system, by field, in arrays of the inputs' shapes.

    A sink's is ``[HV]``.
    """
    s, kind = case.shape, case.kind
    definition = mechanism.definition(case.mechanism)
    spread: dict[str, Any] = {}

    def columns(rows: Array) -> list[Any]:
        return [numbers.matrix([[float(x)] for x in row]) for row in rows]

    def scalars(row: Array) -> list[Any]:
        return [numbers.number(float(x)) for x in row]

    def matrix(x: Array) -> Any:
        return numbers.matrix([[float(y) for y in row] for row in x])

    for b, hv in np.ndindex(s.B, s.HV):
        q, k, v = (columns(case.spread(name)[b, :, hv]) for name in ("q", "k", "v"))
        options: dict[str, Any] = {"scale": numbers.number(case.scale)}
        options["d_output"] = columns(functional.output[b, :, hv])
        if kind.stateful:
            rates = np.broadcast_to(case.log_decay, (s.B, s.T, s.HV, s.K))[b, :, hv]
            alpha = decays(numbers, _exponentials, rates) if kind.gate else None
            beta = scalars(case.beta[b, :, hv]) if case.beta is not None else None
            start = np.zeros((s.K, s.V)) if case.initial_state is None else case.initial_state[b, hv]
            options |= {"state": matrix(start), "d_state": matrix(functional.state[b, hv])}
            if kind.directed:
                tokens = {name: columns(case.spread(name)[b, :, hv]) for name in kind.tokens if name != "g"}
                found = directed_adjoint.gradients(numbers, tokens, alpha or [], **options)
            else:
                found = adjoint.recurrence(numbers, q, k, v, alpha, beta, **options)
        else:
            options |= {"linear": kind.weights == "linear", **visibility(numbers, kind)}
            found = adjoint.attention(numbers, definition.weights, q, k, v, **options)
        for field, value in found.items():
            if field not in (*case.arrays(), "sink"):
                continue
            shape = (s.B, s.HV, s.K, s.V)
            if field == "initial_state":
                spread.setdefault(field, np.empty(shape, dtype=object))[b, hv] = numbers.to_lists(value)
                continue
            rows = np.array([[entry for (entry,) in _list(numbers, x)] for x in value], dtype=object)
            if row_axes(case, field) == ():
                rows = rows.sum(-1)
            target = spread.setdefault(field, np.empty((s.B, s.T, s.HV, *rows.shape[1:]), dtype=object))
            target[b, :, hv] = rows
    sinks = {field: spread.pop(field).sum((0, 1)) for field in ("sink",) if field in spread}
    return {field: gathered(case, field, array) for field, array in spread.items()} | sinks


def _exponentials(numbers: Any, gates: list[Any]) -> list[Any]:
    """Of every channel, also for a gate per head."""
    return [numbers.exp_entries(x) for x in gates]


def _list(numbers: Any, value: Any) -> list[list[Any]]:
    """A column's entries; a scalar counts as a column of one."""
    try:
        return list(numbers.to_lists(value))
    except AttributeError:
        return [[value]]
