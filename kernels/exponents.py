"""Decays between the tokens of a chunk, from sums of log decays formed by adding alone, and their adjoint.

Blocks of 1, 2, 4, ... C / 2 rows are paired. Between a token j in the first block of a pair and a token i in
the second, g_{j+1} + ... + g_i is the sum out of j to the border of the blocks plus the sum from the border
into i. Every sum has at most the sign of a gate, so no exponent is above 0, a gate of -inf is exact, and no
pair with j > i is ever formed. Where the exponentials of the sums over whole blocks are multiplied instead
(`levels`), a decay is a product of at most 1 + log2(C) of them.
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


def block_decays(g: Tensor) -> list[Tensor]:
    """e^(sum over each block) of 1, 2, 4, ... C rows of g [..., C, X]: [..., C / width, X]."""
    sums = [g]
    for _ in widths(g.shape[-2]):
        first, second = sums[-1].unflatten(-2, (-1, 2)).unbind(-2)
        sums.append(first + second)
    return [x.exp() for x in sums]


def levels(later: Tensor, earlier: Tensor, decays: list[Tensor]) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Of each level its width, the rows of the second blocks and those of the first, as views
    [..., C / (2 width), width, R, X] and [..., C / (2 width), width, X] that the next level overwrites.

    ``later`` [..., C, R, X] comes decayed by each row's own gate, ``earlier`` [..., C, X] as it is. Each
    level's rows are decayed from and to the border between the blocks; in the end ``later`` is decayed from
    the chunk's start and ``earlier`` to its end. ``decays`` are the `block_decays`.
    """
    for width, decay in zip(widths(earlier.shape[-2]), decays, strict=False):
        second, first = later_rows(later, width), pairs(earlier, width)[..., 0, :, :]
        yield width, second, first
        of_first, of_second = decay.unflatten(-2, (-1, 2)).unsqueeze(-2).unbind(-3)
        second *= of_first.unsqueeze(-2)
        first *= of_second


def later_rows(x: Tensor, width: int) -> Tensor:
    """View of the second blocks of x [..., C, R, X]: [..., C / (2 width), width, R, X]."""
    return x.unflatten(-3, (-1, 2, width))[..., 1, :, :, :]


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
