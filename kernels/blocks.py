"""Square matrices in blocks: views of them, and the inverse of a unit lower triangular one."""

import torch
from torch import Tensor

_SUBSTITUTED = 16
"""Rows solved one after another; wider blocks are merged by matrix products."""


def widths(rows: int, start: int = 1) -> list[int]:
    """start, 2 start, 4 start, ... rows / 2, for rows = start times a power of two."""
    return [start << level for level in range((rows // start).bit_length() - 1)]


def pairs(x: Tensor, width: int) -> Tensor:
    """View of [..., C, K] as [..., C / (2 width), 2, width, K]."""
    return x.unflatten(-2, (-1, 2, width))


def diagonal_blocks(matrix: Tensor, width: int) -> Tensor:
    """View of [..., C, C] as its diagonal blocks [..., C / width, width, width]."""
    blocks = matrix.unflatten(-1, (-1, width)).unflatten(-3, (-1, width))
    return blocks.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)


def crossing_blocks(matrix: Tensor, width: int) -> Tensor:
    """View of [..., C, C] as [..., C / (2 width), width, width]: of each diagonal block of 2 width rows the
    lower left quarter, where rows of its second half meet columns of its first."""
    return diagonal_blocks(matrix, 2 * width)[..., width:, :width]


def unit_lower_inverse(matrix: Tensor) -> Tensor:
    """The inverse of I + StrictTril(matrix) [..., C, C], C a power of two; the rest of matrix is not read.

    Diagonal blocks of 16 rows by forward substitution, then pairs of inverted blocks X, Y with A between
    them are merged into [[X, 0], [-Y A X, Y]]. Every block formed is a block of the result: for unit keys
    and beta in [0, 2] its entries are at most 2 (claim chunk.inverse-bounded), unlike powers of the strictly
    lower part (claim kda.neumann-exact-unstable).
    """
    rows = matrix.shape[-1]
    inverse = torch.zeros_like(matrix)
    narrow = min(rows, _SUBSTITUTED)
    blocks = diagonal_blocks(matrix, narrow)
    unit = torch.zeros_like(blocks)
    unit.diagonal(dim1=-2, dim2=-1).fill_(1)
    solved = torch.linalg.solve_triangular(blocks, unit, upper=False, unitriangular=True)
    diagonal_blocks(inverse, narrow).copy_(solved)
    for width in widths(rows, narrow):
        between = crossing_blocks(matrix, width)
        solved = diagonal_blocks(inverse, width).unflatten(-3, (-1, 2))
        merged = solved[..., 1, :, :] @ (between @ solved[..., 0, :, :])
        crossing_blocks(inverse, width).copy_(merged.neg_())
    return inverse
