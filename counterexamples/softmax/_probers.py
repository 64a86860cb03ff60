"""Three algorithms that read fewer than all scores, to set the adversary on."""

from collections.abc import Sequence
from fractions import Fraction

from counterexamples.softmax._adversary import Oracle

Values = Sequence[Sequence[Fraction]]


def window(oracle: Oracle, values: Values) -> list[list[Fraction]]:
    """Reads a band of five keys around the query and answers with the best one's value (the mean of ties)."""
    size = len(values)
    near = [range(max(0, i - 2), min(size, i + 3)) for i in range(size)]
    return [_best({j: oracle(i, j) for j in near[i]}, values) for i in range(size)]


def greedy(oracle: Oracle, values: Values) -> list[list[Fraction]]:
    """Reads every key of a row but one: which one depends on what it has seen (adaptive)."""
    outputs = []
    for i in range(len(values)):
        seen = {0: oracle(i, 0)}
        skipped = len(values) - 1 if seen[0] >= 0 else 1
        seen.update({j: oracle(i, j) for j in range(1, len(values)) if j != skipped})
        outputs.append(_best(seen, values))
    return outputs


def all_but_one(oracle: Oracle, values: Values) -> list[list[Fraction]]:
    """Reads all pairs except a single one, the last query's first key."""
    size = len(values)
    skip = (size - 1, 0)
    return [_best({j: oracle(i, j) for j in range(size) if (i, j) != skip}, values) for i in range(size)]


def _best(seen: dict[int, Fraction], values: Values) -> list[Fraction]:
    top = max(seen.values())
    winners = [j for j, score in seen.items() if score == top]
    return [sum((values[j][c] for j in winners), Fraction(0)) / len(winners) for c in range(len(values[0]))]
