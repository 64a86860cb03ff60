"""The backward pass of tiled softmax attention, from the saved logsumexp."""

import torch
from torch import Tensor

from kernels.softmax.arguments import Arguments
from kernels.softmax.decay import TiledDecayGradient
from kernels.softmax.tiles import Grid


def attend_sequence_backward(
    arguments: Arguments,
    causal: bool,
    window: int | None,
    tile_size: int,
    logsumexp: Tensor,
    grad_o: Tensor,
    mean: Tensor,
    gradients: Arguments,
) -> None:
    """Add the gradients of one sequence to ``gradients``, except the sink's.

    With weights p_ij = e^(x_ij - L_i), the gradient of an exponent is p_ij (grad_o_i . v_j - mean_i), where
    mean_i = grad_o_i . o_i - grad_L_i (claim softmax.backprop-baseline; FlashAttention, arXiv 2205.14135,
    Algorithm 4). Hidden keys have p = 0, and a row that saw nothing has L = -inf, for which 0 stands in.
    """
    grid = Grid(arguments, causal, window, tile_size)
    g = arguments.g
    gates = TiledDecayGradient(g, tile_size) if g is not None and g.shape[-1] else None
    finite = logsumexp.masked_fill(logsumexp == -torch.inf, 0.0)
    for rows in grid.rows():
        q = arguments.q[..., rows.queries, :].flatten(2, 3)
        upstream = grad_o[..., rows.queries, :].flatten(2, 3)
        center, level = mean[..., rows.queries, None], finite[..., rows.queries, None]
        for tile in rows.tiles:
            keys = grid.key_slice(tile)
            k, v = arguments.k[:, :, keys], arguments.v[:, :, keys]
            weights = grid.exponents(rows, tile).sub_(level).exp_()
            gradient = (upstream @ v.mT).view_as(weights).sub_(center).mul_(weights)
            flat = gradient.flatten(2, 3)
            gradients.v[:, :, keys] += weights.flatten(2, 3).mT @ upstream
            gradients.k[:, :, keys] += flat.mT @ q
            gradients.q[..., rows.queries, :] += (flat @ k).unflatten(2, gradient.shape[2:4])
            if gates is not None:
                gates.add(rows.tile, rows.inside, tile, gradient)
            if gradients.slopes is not None:
                distance = grid.distance(rows, keys).abs()
                gradients.slopes.sub_((gradient * distance).sum((0, 3, 4)))
    if gates is not None and gradients.g is not None:
        gradients.g.copy_(gates.result())
