"""Sums of log decays between the tokens of a chunk, formed by adding alone, and their adjoint.

Blocks of 1, 2, 4, ... C / 2 rows are paired. Between a token j in the first block of a pair and a token i in
the second, g_{j+1} + ... + g_i is the sum out of j to the border of the blocks plus the sum from the border
into i. Every sum has at most the sign of a gate, so no exponent is above 0, a gate of -inf is exact, and no
pair with j > i is ever formed.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from kernels.blocks import pairs, widths


class Exponents:
    """Sums of g [..., C, X], C a power of two: ``into`` row i from its block's start, its own gate included;
    ``out_of`` row j to its block's end, its own gate excluded. The block is one row at first."""

    def __init__(self, g: Tensor) -> None:
        self.into, self.out_of = g.clone(), torch.zeros_like(g)

    def levels(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Of each level its width and its sums into the second and out of the first blocks, as views
        [..., C / (2 width), width, X] that the next level overwrites. At the end the block is the chunk."""
        for width in widths(self.into.shape[-2]):
            into, out_of = pairs(self.into, width), pairs(self.out_of, width)
            first, second = out_of[..., 0, :, :], into[..., 1, :, :]
            yield width, second, first
            first += into[..., 1, -1:, :]
            second += into[..., 0, -1:, :]


def adjoint_levels(d_into: Tensor, d_out_of: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """The levels in reverse, as views of the gradients for the caller to add to.

    ``d_into`` ends as the gradient of g: each gate gets what the sums that contain it get, and nothing is
    subtracted.
    """
    for width in reversed(widths(d_into.shape[-2])):
        into, out_of = pairs(d_into, width), pairs(d_out_of, width)
        # The sum into the second block runs over all of the first, the sum out of the first over the second.
        of_first = into[..., 1, :, :].sum(-2)
        into[..., 1, -1, :] += out_of[..., 0, :, :].sum(-2)
        into[..., 0, -1, :] += of_first
        yield width, into[..., 1, :, :], out_of[..., 0, :, :]
