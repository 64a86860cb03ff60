"""Re-check gradients of softmax attention by differentiating it with dual numbers, in exact rationals.

The loss is Σ ō_i·o_i + Σ ℓ̄_i ln Z_i with Z_i = Σ_j e_ij and o_i = Σ_j e_ij v_j / Z_i. Data: ``powers`` (n×T,
the e_ij = e^{s_ij} > 0, or 0 for a hidden token), ``values`` (T×V), the cotangents ``outputs`` (n×V) and
``totals`` (n), and ``gradients`` of ``scores`` s (n×T) and ``values`` (T×V).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.duals import Dual, pair, total
from verify.checkers.reading import Matrix, Vector, Wrong, matrix, vector, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "dual numbers"
KINDS = frozenset({"softmax-adjoint"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated gradient is the derivative of the loss in that input."""
    return word(NAME, obligation, _gradients)


def _gradients(data: Mapping[str, Any]) -> str:
    powers, values, outputs = (matrix(data[name]) for name in ("powers", "values", "outputs"))
    totals = vector(data["totals"])
    if not len(powers) == len(outputs) == len(totals) or len(powers[0]) != len(values):
        raise Wrong("the numbers of queries or tokens do not fit together")
    if len(outputs[0]) != len(values[0]):
        raise Wrong("outputs and values differ in width")
    if any(power < 0 for row in powers for power in row) or not all(any(row) for row in powers):
        raise IllFormed("powers are positive, or 0 where hidden, and every query sees a token")
    stated = {name: matrix(data["gradients"][name]) for name in ("scores", "values")}
    checked = 0
    for name, point in (("scores", powers), ("values", values)):
        if [len(row) for row in stated[name]] != [len(row) for row in point]:
            raise Wrong(f"the gradient of {name} has another shape than {name}")
        for i, row in enumerate(stated[name]):
            for j, wanted in enumerate(row):
                moved = {"scores": _still(powers), "values": _still(values)}
                # A power moves by its score, so by itself.
                moved[name][i][j] = Dual(point[i][j], point[i][j] if name == "scores" else Fraction(1))
                slope = _slope(moved["scores"], moved["values"], outputs, totals)
                if slope != wanted:
                    where = f"the derivative in {name}[{i}][{j}]"
                    raise Wrong(f"{where} is {slope}, not the stated {wanted}")
                checked += 1
    return f"{checked} derivatives taken one by one, all as stated"


def _still(rows: Matrix) -> list[list[Dual]]:
    return [[Dual(entry) for entry in row] for row in rows]


def _slope(powers: list[list[Dual]], values: list[list[Dual]], outputs: Matrix, totals: Vector) -> Fraction:
    """The derivative of the loss."""
    slope = Fraction(0)
    columns = [list(column) for column in zip(*values, strict=True)]
    for row, weights, weight in zip(powers, outputs, totals, strict=True):
        whole = total(row)
        read = [pair(row, column) / whole for column in columns]
        slope += pair(read, [Dual(entry) for entry in weights]).slope
        slope += weight * whole.slope / whole.value
    return slope
