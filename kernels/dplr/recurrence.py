"""Transitions diagonal plus rank one as a loop over tokens."""

import torch
from torch import Tensor


def scan_tokens(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, a: Tensor | None, b: Tensor | None, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [B, HV, K, V] of `kernels.dplr.arguments.Arguments`."""
    decay, keys = g.exp().unsqueeze(-1), k.unsqueeze(-1)
    outputs = []
    for t in range(v.shape[1]):
        write = v[:, t].unsqueeze(-2)
        kept = decay[:, t] * state
        if a is not None:
            read = a[:, t].unsqueeze(-2) @ state
            if b is None:
                write = write + read
            else:
                kept = kept + b[:, t].unsqueeze(-1) * read
        state = kept + keys[:, t] * write
        outputs.append(q[:, t].unsqueeze(-2) @ state)
    return (torch.cat(outputs, dim=2).transpose(1, 2) if outputs else torch.empty_like(v)), state
