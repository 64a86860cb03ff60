"""Re-check gradients of KDA, GDN and the delta rule by differentiating the recurrence with dual numbers.

The loss is Σ_t ō_t·o_t + Σ(final ∘ S_T) for S ← Diag(α_t)S, S ← S + β_t k_t(v_t − Sᵀk_t)ᵀ, o_t = Sᵀq_t.
Data: ``queries``, ``keys``, ``decays`` (T×K, positive), ``values`` (T×V), ``strengths`` (T), ``initial``
(K×V); cotangents ``outputs`` (T×V) and ``final`` (K×V); ``gradients`` with the same names and shapes as the
inputs, that of ``decays`` being the derivative in g = ln α.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.duals import Dual, pair
from verify.checkers.reading import Matrix, Wrong, matrix, vector, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "dual numbers"
KINDS = frozenset({"adjoint"})
INPUTS = ("queries", "keys", "values", "decays", "strengths", "initial")


_Rows = list[list[Dual]]


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated gradient is the derivative of the loss in that input."""
    return word(NAME, obligation, _gradients)


def _gradients(data: Mapping[str, Any]) -> str:
    point = {name: _rows(data[name], name) for name in INPUTS}
    stated = {name: _rows(data["gradients"][name], name) for name in INPUTS}
    outputs, final = matrix(data["outputs"]), matrix(data["final"])
    _fit(point, outputs, final)
    checked = 0
    for name in INPUTS:
        if [len(row) for row in stated[name]] != [len(row) for row in point[name]]:
            raise Wrong(f"the gradient of {name} has another shape than {name}")
        for i, row in enumerate(stated[name]):
            for j, wanted in enumerate(row):
                slope = _loss(_moved(point, name, i, j), outputs, final).slope
                if slope != wanted:
                    where = f"the derivative in {name}[{i}][{j}]"
                    raise Wrong(f"{where} is {slope}, not the stated {wanted}")
                checked += 1
    return f"{checked} derivatives taken one by one, all as stated"


def _rows(value: object, name: str) -> Matrix:
    return [[item] for item in vector(value)] if name == "strengths" else matrix(value)


def _fit(point: Mapping[str, Matrix], outputs: Matrix, final: Matrix) -> None:
    tokens = {len(point[name]) for name in INPUTS if name != "initial"} | {len(outputs)}
    keys = {len(point[name][0]) for name in ("queries", "keys", "decays")}
    keys |= {len(point["initial"]), len(final)}
    values = {len(rows[0]) for rows in (point["values"], point["initial"], outputs, final)}
    if len(tokens) != 1 or len(keys) != 1 or len(values) != 1:
        raise Wrong("the numbers of tokens or the widths do not fit together")
    if any(decay <= 0 for row in point["decays"] for decay in row):
        raise IllFormed("a decay e^g is positive")


def _moved(point: Mapping[str, Matrix], name: str, i: int, j: int) -> dict[str, _Rows]:
    """All inputs as duals, entry (i, j) of one of them moving; a decay moves by its gate, so by itself."""
    duals = {key: [[Dual(entry) for entry in row] for row in rows] for key, rows in point.items()}
    entry = point[name][i][j]
    duals[name][i][j] = Dual(entry, entry if name == "decays" else Fraction(1))
    return duals


def _loss(inputs: Mapping[str, _Rows], outputs: Matrix, final: Matrix) -> Dual:
    state, loss = inputs["initial"], Dual(Fraction(0))
    tokens = zip(*(inputs[name] for name in INPUTS[:-1]), outputs, strict=True)
    for query, key, value, decay, (strength,), weights in tokens:
        state = [[factor * entry for entry in row] for factor, row in zip(decay, state, strict=True)]
        held = [pair(key, column) for column in zip(*state, strict=True)]
        added = [strength * (new - old) for new, old in zip(value, held, strict=True)]
        state = [
            [entry + place * u for entry, u in zip(row, added, strict=True)]
            for row, place in zip(state, key, strict=True)
        ]
        read = [pair(query, column) for column in zip(*state, strict=True)]
        loss = loss + pair(read, [Dual(weight) for weight in weights])
    for row, row_weights in zip(state, final, strict=True):
        loss = loss + pair(row, [Dual(weight) for weight in row_weights])
    return loss
