"""The forward pass of tiled softmax attention: a running maximum, a running sum and a running output."""

import torch
from torch import Tensor

from kernels.softmax.arguments import Arguments
from kernels.softmax.tiles import Grid


def attend_sequence(
    arguments: Arguments, causal: bool, window: int | None, tile_size: int, o: Tensor, logsumexp: Tensor
) -> None:
    """Write the attention of one sequence to ``o`` [B, HKV, G, T, V] and ``logsumexp`` [B, HKV, G, T].

    The largest exponent m, the sum s of e^(x - m) and the output, as in FlashAttention-2 (Dao, arXiv
    2307.08691, Algorithm 1). A sink is the first exponent; it has no value. While m = -inf nothing has been
    seen, and 0 stands in for m where it is subtracted, so that no -inf - -inf arises.
    """
    grid = Grid(arguments, causal, window, tile_size)
    for rows in grid.rows():
        target = o[..., rows.queries, :]
        output = torch.zeros_like(target)
        if arguments.sink is None:
            largest = torch.full_like(target[..., 0], -torch.inf)
            total = torch.zeros_like(largest)
        else:
            largest = arguments.sink.unsqueeze(-1).expand(target.shape[:-1])
            total = (largest > -torch.inf).to(target.dtype)
        for tile in rows.tiles:
            x = grid.exponents(rows, tile)
            previous, largest = largest, torch.maximum(largest, x.amax(-1))
            reference = largest.masked_fill(largest == -torch.inf, 0.0)
            weights = x.sub_(reference.unsqueeze(-1)).exp_()
            shrink = (previous - reference).exp()
            total.mul_(shrink).add_(weights.sum(-1))
            added = weights.flatten(2, 3) @ grid.v[:, :, grid.key_slice(tile)]
            output.mul_(shrink.unsqueeze(-1)).add_(added.view_as(output))
        target.copy_(output / total.masked_fill(total == 0, 1.0).unsqueeze(-1))
        logsumexp[..., rows.queries] = largest + total.log()
