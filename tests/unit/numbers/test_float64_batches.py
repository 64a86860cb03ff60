"""Float64 over leading batch dimensions: every item as if it were alone."""

import numpy as np
import pytest

from verify.numbers.float64 import Float64

NUMBERS = Float64()
RNG = np.random.default_rng(0)


def integers(*shape):
    """Small integers, for which every operation below is exact, so that results must be identical."""
    return RNG.integers(-8, 9, shape).astype(float)


A, B, C = integers(2, 3, 4, 5), integers(2, 3, 4, 5), integers(2, 3, 5, 6)
D, U, W, S = integers(2, 3, 4, 1), integers(2, 3, 4, 1), integers(2, 3, 5, 1), integers(2, 3)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("add", (A, B)),
        ("sub", (A, B)),
        ("matmul", (A, C)),
        ("transpose", (A,)),
        ("scale", (S, A)),
        ("scale_rows", (D, A)),
        ("outer", (U, W)),
        ("shift", (U,)),
    ],
)
def test_each_item_as_if_alone(operation, arguments):
    method = getattr(NUMBERS, operation)
    batched = method(*arguments)
    for item in np.ndindex(2, 3):
        np.testing.assert_array_equal(batched[item], method(*(x[item] for x in arguments)))


def test_rows_and_entries_keep_the_batch():
    assert NUMBERS.shape(A) == (4, 5)
    rows = NUMBERS.row_vectors(A)
    assert [row.shape for row in rows] == [(2, 3, 5, 1)] * 4
    np.testing.assert_array_equal(NUMBERS.stack_rows(rows), A)
    np.testing.assert_array_equal(NUMBERS.entry(A, 2, 3), A[..., 2, 3])
    np.testing.assert_array_equal(NUMBERS.matrix(NUMBERS.to_lists(A)), A)


def test_single_rows_broadcast_to_the_batch():
    stacked = NUMBERS.stack_rows([NUMBERS.zeros(5, 1), W])
    assert stacked.shape == (2, 3, 2, 5)
    np.testing.assert_array_equal(stacked[..., 1, :], W[..., 0])
    np.testing.assert_array_equal(NUMBERS.matrix([[1, S]])[..., 0, 1], S)
