"""The search behind softmax.needle: the adversary set on three algorithms."""

from typing import Any

from counterexamples.softmax import _probers
from counterexamples.softmax._adversary import deceive

TOKENS = 8
GAP = "3/4"


def needles() -> list[dict[str, Any]]:
    """Two inputs for each algorithm, eight tokens whose values are the unit vectors."""
    values = [[int(i == j) for i in range(TOKENS)] for j in range(TOKENS)]
    return [
        deceive(prober, values, GAP) for prober in (_probers.window, _probers.greedy, _probers.all_but_one)
    ]
