"""The delta rule as a loop over tokens, shared by the recurrent forms of its mechanisms."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from kernels.packing import sequence_offsets

Scan = Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From q, k, v, g, beta [B, T, ...] and the state before to the outputs and the state after."""


def scan_tokens(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor | None, beta: Tensor, state: Tensor, *, scale: float
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [B, HV, K, V], in the precision of the prepared arguments.

    Per token: decay the state, read the decayed state at the key, write the error, read at the query
    (the written state), so that a token sees itself.
    """
    batch, tokens, heads, values = v.shape
    rows, keys = batch * heads, q.shape[3]
    # Batch and heads in one leading axis: one token's rows are [N, 1, K] and [N, 1, V].
    split = _one_token if tokens == 1 else _by_token
    by_token = (
        split(q, rows, 1, keys),
        split(k, rows, 1, keys),
        split(v, rows, 1, values),
        [None] * tokens if g is None else split(g.exp(), rows, g.shape[3], 1),
        split(beta, rows, 1, 1),
    )
    state = state.reshape(rows, keys, values)
    # A decayed state is ours to overwrite, unless autograd has kept it.
    add = torch.addcmul if g is None or torch.is_grad_enabled() else Tensor.addcmul_
    outputs = []
    for query, key, value, decay, strength in zip(*by_token, strict=True):
        if decay is not None:
            state = decay * state
        write = strength * torch.baddbmm(value, key, state, alpha=-1)
        state = add(state, key.mT, write)
        # With beta=0 a product with the scale in it: `value` gives no more than its shape.
        outputs.append(torch.baddbmm(value, query, state, beta=0, alpha=scale))
    return _in_order(outputs, v), state.view(batch, heads, keys, values)


def _by_token(x: Tensor, rows: int, height: int, width: int) -> list[Tensor]:
    """The tokens of x [B, T, ...], each of the shape given."""
    return [token.reshape(rows, height, width) for token in x.unbind(1)]


def _one_token(x: Tensor, rows: int, height: int, width: int) -> tuple[Tensor]:
    """The same of a single token, without what `unbind` costs a decoder at every call."""
    return (x.reshape(rows, height, width),)


def _in_order(rows: list[Tensor], like: Tensor) -> Tensor:
    """The inverse: tokens [B * H, 1, X] as a tensor of the shape [B, T, H, X] of another."""
    batch, tokens, heads, width = like.shape
    if tokens == 1:
        return rows[0].view_as(like)
    return torch.cat(rows, dim=1).view(batch, heads, tokens, width).transpose(1, 2) if rows else like.clone()


def scan_sequences(scan: Scan, arguments: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The scan of each sequence: along the batch, or of each one packed along T by itself.

    ``arguments``: q, k, v and what else the scan takes, the state, and the offsets or None.
    """
    *tokens, state, cu_seqlens = arguments
    length = tokens[2].shape[1]
    if cu_seqlens is None:
        # Without tokens the state would come back as it is, sharing memory with the caller's.
        return scan(*tokens, state if length else state.clone())
    offsets = sequence_offsets(cu_seqlens, length)
    outputs, states = [], []
    for n, (start, end) in enumerate(pairwise(offsets)):
        part = (x if x is None else x[:, start:end] for x in tokens)
        output, final = scan(*part, state[n : n + 1])
        outputs.append(output)
        states.append(final)
    return torch.cat(outputs, dim=1), torch.cat(states)
