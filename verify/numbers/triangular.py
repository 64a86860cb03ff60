"""Forward substitution, in the vocabulary of every number system."""

from verify.numbers.protocol import M, NumberSystem, S


def solve_unit_lower(numbers: NumberSystem[S, M], strictly_lower: M, right: M) -> M:
    """The X with (I + L)·X = B, row by row: X_i = B_i − Σ_{j<i} L_ij·X_j.

    Args:
        numbers: the number system.
        strictly_lower: L, n×n; only entries below the diagonal are read.
        right: B, n×m.
    """
    solved: list[M] = []
    for i, row in enumerate(numbers.row_vectors(right)):
        for j, earlier in enumerate(solved):
            row = numbers.sub(row, numbers.scale(numbers.entry(strictly_lower, i, j), earlier))
        solved.append(row)
    return numbers.stack_rows(solved)
