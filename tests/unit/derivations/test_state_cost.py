"""The cost formulas against multiplications counted while the definition runs."""

from typing import Any

import pytest

from derivations.chunk.definition import chunkwise
from verify.numbers.exact import Exact


class Counting(Exact):
    """Exact numbers that count the multiplications of matrix products."""

    def __init__(self) -> None:
        self.count = 0

    def matmul(self, a: Any, b: Any) -> Any:
        (rows, inner), (_, columns) = self.shape(a), self.shape(b)
        self.count += rows * inner * columns
        return super().matmul(a, b)


@pytest.mark.parametrize(("chunk", "chunks", "width"), [(1, 4, 2), (2, 3, 3), (4, 1, 2), (3, 2, 5)])
def test_the_definition_multiplies_as_often_as_stated(chunk: int, chunks: int, width: int) -> None:
    numbers = Counting()
    tokens = chunk * chunks
    vectors = [numbers.matrix([[t + r] for r in range(width)]) for t in range(tokens)]
    ones = [numbers.matrix([[1]] * width)] * tokens
    chunkwise(
        numbers,
        vectors,
        vectors,
        vectors,
        ones,
        None,
        scale=numbers.number(1),
        state=numbers.zeros(width, width),
        chunk_size=chunk,
    )
    # The definition skips masked scores, but multiplies the masked half of the matrix with the values.
    state, scores = 2 * tokens * width**2, tokens * (chunk + 1) * width // 2
    assert numbers.count == state + scores + tokens * chunk * width
