"""The delta rule as a loop over tokens, shared by the recurrent forms of its mechanisms."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from kernels.arguments import Arguments
from kernels.packing import sequence_offsets

Scan = Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From q, k, v, g, beta [B, T, ...] and the state before to the outputs and the state after."""


def scan_tokens(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor | None, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [B, HV, K, V], in the precision of the prepared arguments.

    Per token: decay the state, read the decayed state at the key, write the error, read at the query
    (the written state), so that a token sees itself.
    """
    batch, _, heads, _ = v.shape
    # Batch and heads in one leading axis: one token's rows are [N, 1, K] and [N, 1, V].
    q, k, v, beta = (x.transpose(1, 2).flatten(0, 1) for x in (q, k, v, beta.unsqueeze(-1)))
    decay = None if g is None else g.transpose(1, 2).flatten(0, 1).exp().unsqueeze(-1)
    state = state.flatten(0, 1)
    outputs: list[Tensor] = []
    for t in range(v.shape[1]):
        row = slice(t, t + 1)
        if decay is not None:
            state = decay[:, t] * state
        error = v[:, row] - torch.bmm(k[:, row], state)
        # In place on the product, so that only one more state is allocated.
        state = (k[:, row].mT * (beta[:, row] * error)).add_(state)
        outputs.append(torch.bmm(q[:, row], state))
    o = outputs[0] if len(outputs) == 1 else torch.cat([v[:, :0], *outputs], dim=1)
    return o.view(batch, heads, *o.shape[1:]).transpose(1, 2), state.view(batch, heads, *state.shape[1:])


def scan_sequences(scan: Scan, arguments: Arguments) -> tuple[Tensor, Tensor]:
    """The scan of each sequence: along the batch, or of each one packed along T by itself."""
    *tokens, state, cu_seqlens = arguments
    if cu_seqlens is None:
        # Without tokens the state would come back as it is, sharing memory with the caller's.
        return scan(*tokens, state if arguments.v.shape[1] else state.clone())
    offsets = sequence_offsets(cu_seqlens, arguments.v.shape[1])
    outputs, states = [], []
    for n, (start, end) in enumerate(pairwise(offsets)):
        part = (x if x is None else x[:, start:end] for x in tokens)
        output, final = scan(*part, state[n : n + 1])
        outputs.append(output)
        states.append(final)
    return torch.cat(outputs, dim=1), torch.cat(states)
