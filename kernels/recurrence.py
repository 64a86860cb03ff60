"""The gated delta rule as a loop over tokens, shared by the recurrent forms of KDA and GDN."""

import torch
from torch import Tensor

from kernels.arguments import Arguments


def scan_tokens(arguments: Arguments) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [B, HV, K, V], in the working precision of ``arguments``.

    Per token: decay the state, read the decayed state at the key, write the error, read at the query
    (the written state), so that a token sees itself.
    """
    q, k, v, g, beta, state = arguments
    decay = g.exp()
    outputs = []
    for t in range(v.shape[1]):
        key = k[:, t].unsqueeze(-1)
        state = decay[:, t].unsqueeze(-1) * state
        error = v[:, t].unsqueeze(-2) - key.mT @ state
        state = state + key @ (beta[:, t, :, None, None] * error)
        outputs.append(q[:, t].unsqueeze(-2) @ state)
    return (torch.cat(outputs, dim=2).transpose(1, 2) if outputs else torch.empty_like(v)), state
