"""What both claims use: squared norms by coordinate, and the two expectations that are cited."""

from typing import Any

from sympy import Expr, IndexedBase, Sum, symbols

from verify.model.claim import Assumption, Variable

c, d, m = symbols("c d m")
q, k = IndexedBase("q"), IndexedBase("k")
SIZES: tuple[dict[Any, int], ...] = ({d: 1}, {d: 3})


def coordinates(summand: Expr) -> Sum:
    """Σ over the d coordinates."""
    return Sum(summand, (c, 1, d))


own = coordinates(q[c] ** 2) + coordinates(k[c] ** 2)
"""‖q‖² + ‖k‖²."""
together = coordinates((q[c] + k[c]) ** 2)
"""‖q + k‖²."""
apart = coordinates((q[c] - k[c]) ** 2)
"""‖q − k‖²."""
product = coordinates(q[c] * k[c])
"""q·k."""

GENERATING = Assumption(
    r"moment generating function of $w\sim N(0,I_d)$: $\mathbb E\,e^{w\cdot z}=e^{\|z\|^2/2}$", cited=True
)
CHARACTERISTIC = Assumption(
    r"characteristic function of $w\sim N(0,I_d)$: $\mathbb E\cos(w\cdot z)=e^{-\|z\|^2/2}$", cited=True
)
VARIABLES = (
    Variable("q, k", r"\mathbb{R}^d"),
    Variable("d, m", "width and number of features, integers ≥ 1"),
    Variable("w_i", "independent, $N(0,I_d)$"),
)
