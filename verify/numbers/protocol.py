"""The vocabulary in which a mechanism's mathematics is written once: one protocol for all number systems.

S is a system's scalar, M its matrix. A vector of length n is an n×1 matrix. A system may let both carry
leading batch dimensions (`float64` does); a definition written in this vocabulary then runs on the whole
batch. Values are immutable: every method returns a new one.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from verify.numbers.convert import Number

S = TypeVar("S")
M = TypeVar("M")


class NumberSystem(Protocol[S, M]):
    """Linear algebra over one kind of number."""

    name: str

    def number(self, value: Number | S) -> S:
        """The scalar nearest to the exact `value` (equal to it, or enclosing it, where the system can)."""
        ...

    def zeros(self, m: int, n: int) -> M:
        """The m×n zero matrix."""
        ...

    def eye(self, n: int) -> M:
        """The n×n identity."""
        ...

    def matrix(self, rows: Sequence[Sequence[Number | S]]) -> M:
        """The matrix with these rows; at least one row, all of one positive length."""
        ...

    def shape(self, a: M) -> tuple[int, int]:
        """(rows, columns), without batch dimensions."""
        ...

    def entry(self, a: M, i: int, j: int) -> S:
        """a[i, j], counted from 0."""
        ...

    def to_lists(self, a: M) -> list[list[S]]:
        """The entries, row by row."""
        ...

    def row_vectors(self, a: M) -> list[M]:
        """The m rows of an m×n matrix, each as an n×1 column: a [T, K] tensor becomes T token vectors."""
        ...

    def stack_rows(self, vectors: Sequence[M]) -> M:
        """The m×n matrix whose rows are m ≥ 1 vectors n×1: the inverse of `row_vectors`."""
        ...

    def add(self, a: M, b: M) -> M:
        """a + b."""
        ...

    def sub(self, a: M, b: M) -> M:
        """a − b."""
        ...

    def matmul(self, a: M, b: M) -> M:
        """The matrix product a·b."""
        ...

    def transpose(self, a: M) -> M:
        """aᵀ."""
        ...

    def scale(self, s: S, a: M) -> M:
        """s·a."""
        ...

    def scale_rows(self, d: M, a: M) -> M:
        """Diag(d)·a for a vector d (m×1) and a (m×n); with n = 1 the entrywise product of two vectors."""
        ...

    def outer(self, u: M, w: M) -> M:
        """u·wᵀ for vectors u (m×1) and w (n×1)."""
        ...

    def exp(self, x: S) -> S:
        """e^x."""
        ...

    def exp_entries(self, a: M) -> M:
        """e^x for every entry x."""
        ...

    def log(self, x: S) -> S:
        """The natural logarithm."""
        ...

    def sqrt(self, x: S) -> S:
        """The non-negative square root."""
        ...

    def reciprocal(self, x: S) -> S:
        """1/x for x ≠ 0."""
        ...

    def shift(self, column: M) -> S:
        """A scalar to subtract from logits before `exp`, so that none overflows; any value is correct."""
        ...

    def solve(self, a: M, b: M) -> M:
        """The x with a·x = b, for an invertible n×n matrix a and b (n×m).

        Raises:
            RequestError: a is singular, or cannot be told from a singular matrix.
        """
        ...
