"""The backward pass of softmax attention from its exponentials: over any number system, and on literals."""

from typing import Any

from verify.model.evidence import Obligation
from verify.numbers.protocol import M, NumberSystem, S

POWERS = (("2", "1/3", "0", "0"), ("1", "5", "1/2", "0"), ("3", "1/4", "7", "2/5"))
VALUES = ((2, 0, 1), (1, -1, 0), (0, 3, 1), (-1, 2, 2))
OUTPUTS = ((1, 2, 0), (-1, 1, 1), (0, 1, 3))
TOTALS = ("1/2", "0", "-3")


def row(numbers: NumberSystem[S, M], powers: M, values: M, output: M, total: S, share: S) -> tuple[M, M]:
    """One query of claim softmax.adjoint: (gradient in its scores T×1, its part of the values' T×V).

    powers: M_ij e^{s_ij}, T×1; values: T×V; output: ō, V×1; total: the log-sum-exp's cotangent; ``share``
    multiplies δ (1; another value is a fault, for a mutant).
    """
    ones = numbers.matrix([[1]] * numbers.shape(powers)[0])
    whole = numbers.entry(numbers.matmul(numbers.transpose(ones), powers), 0, 0)
    weights = numbers.scale(numbers.reciprocal(whole), powers)
    read = numbers.matmul(numbers.transpose(values), weights)
    delta = numbers.scale(share, numbers.matmul(numbers.transpose(output), read))
    baseline = numbers.sub(numbers.matmul(ones, delta), numbers.scale(total, ones))
    in_weights = numbers.matmul(values, output)
    return numbers.scale_rows(weights, numbers.sub(in_weights, baseline)), numbers.outer(weights, output)


def in_numbers(share: int = 1) -> Obligation:
    """Gradients on literal rows, for the checker to compare with dual numbers."""
    from verify.numbers.exact import Exact

    numbers = Exact()
    values = numbers.matrix(VALUES)
    in_values, in_scores = numbers.zeros(*numbers.shape(values)), []
    rows = zip(POWERS, OUTPUTS, TOTALS, strict=True)
    for powers, output, total in rows:
        column, weights = numbers.matrix([[power] for power in powers]), numbers.matrix([[x] for x in output])
        in_row, part = row(numbers, column, values, weights, numbers.number(total), numbers.number(share))
        in_scores.append(in_row)
        in_values = numbers.add(in_values, part)

    def texts(matrix: Any) -> list[list[str]]:
        return [[str(entry) for entry in line] for line in numbers.to_lists(matrix)]

    data = {
        "powers": POWERS,
        "values": VALUES,
        "outputs": OUTPUTS,
        "totals": TOTALS,
        "gradients": {"scores": texts(numbers.stack_rows(in_scores)), "values": texts(in_values)},
    }
    return Obligation("softmax-adjoint", "3 queries, 4 tokens, against dual numbers", "E", data)
