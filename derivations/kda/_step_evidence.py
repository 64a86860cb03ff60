"""Steps and reasons why there is none, as obligations for checkers that share no code with the decision."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from derivations.kda._represent import Impossible, Matrix, Step, Surd
from derivations.kda._stretch import Squares
from verify.model.evidence import Obligation


def product(
    label: str, matrix: Matrix, steps: Sequence[Step], bounded: bool, within: Fraction = Fraction(0)
) -> Obligation:
    """The product of the steps, the first applied first, is the matrix, or that near in Frobenius norm.

    All irrational steps share one radicand.
    """
    data = {
        "matrix": text(matrix),
        "factors": [
            {
                "alpha": [_surd(x) for x in step.alpha],
                "erase": [[_surd(x) for x in row] for row in step.erase],
            }
            for step in steps
        ],
        "radicand": str(max(step.radicand for step in steps)),
        "bounded": bounded,
        "within": str(within),
    }
    return Obligation("kda-product", label, "E", data)


def impossible(label: str, matrix: Matrix, found: Impossible, bounded: bool) -> Obligation:
    """The reason rules out every step that is the matrix, or every product of them for «stretch»."""
    if found.rule == "stretch":
        vector = [str(x) for x in found.at["vector"]]
        return Obligation("stretch", label, "E", {"matrix": text(matrix), "vector": vector})
    data = {"matrix": text(matrix), "bounded": bounded, "rule": found.rule, "at": found.at}
    return Obligation("no-kda-step", label, "E", data)


def contraction(label: str, matrix: Matrix, squares: Squares) -> Obligation:
    """I − MᵀM is the given sum of squares."""
    weights, rows = squares
    data = {"matrix": text(matrix), "weights": [str(x) for x in weights], "rows": text(rows)}
    return Obligation("contraction", label, "E", data)


def text(matrix: Matrix) -> list[list[str]]:
    """The entries as they stand in certificates."""
    return [[str(entry) for entry in row] for row in matrix]


def _surd(value: Surd) -> Any:
    return [str(value.p), str(value.q)] if value.q else str(value.p)
