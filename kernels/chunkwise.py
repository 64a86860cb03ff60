"""The gated delta rule chunk by chunk, shared by the chunked forms of KDA and GDN."""

from collections.abc import Callable

import torch
from torch import Tensor

from kernels.arguments import Arguments

Scores = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From x, y [..., C, K] and g [..., C, K or 1] to the lower triangular [..., C, C] whose entry (i, j)
is the sum over channels of x_i y_j e^(g_{j+1} + ... + g_i)."""


def scan_chunks(arguments: Arguments, scores: Scores, chunk_size: int) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [B, HV, K, V], in the working precision of ``arguments``.

    With G the inclusive running sum of g in the chunk and S the state before it, the writes E [C, V] solve
    (I + StrictTril(Diag(beta) Scores(K, K))) E = Diag(beta) (V - (e^G K) S): the UT transform of Kimi
    Linear (arXiv 2510.26692) and Gated DeltaNet (arXiv 2412.06464), applied to the right-hand side instead
    of stored as the WY factors U - W S, which cancel when S already predicts V. Then
    O = (e^G Q) S + Scores(Q, K) E and S_next = Diag(e^{G_C}) S + (e^{G_C - G} K)^T E.

    The system is solved by forward substitution, never by powers of the strictly lower part, which grow
    past any format while the solution stays small. Every exponent is a sum of gates, hence at most 0, and
    never a difference of two sums, so a gate of -inf is exact. The last chunk has only its own rows:
    nothing is padded. As long as nothing overflows, an output depends on no later token, bit for bit.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, but it is {chunk_size}.")
    state = arguments.state
    q, k, v, g, beta = (tensor.transpose(1, 2) for tensor in arguments[:5])
    outputs = []
    for start in range(0, v.shape[2], chunk_size):
        rows = slice(start, start + chunk_size)
        query, key, value, gate = q[:, :, rows], k[:, :, rows], v[:, :, rows], g[:, :, rows]
        strength = beta[:, :, rows].unsqueeze(-1)
        from_start = gate.cumsum(-2).exp()
        right = strength * (value - (from_start * key) @ state)
        # Only the strictly lower part is read: the diagonal is taken as 1.
        left = strength * scores(key, key, gate)
        writes = torch.linalg.solve_triangular(left, right, upper=False, unitriangular=True)
        outputs.append((from_start * query) @ state + scores(query, key, gate) @ writes)
        to_end = suffix_sums(gate).exp()
        state = from_start[:, :, -1].unsqueeze(-1) * state + (to_end * key).mT @ writes
    o = torch.cat(outputs, dim=2).transpose(1, 2) if outputs else torch.empty_like(arguments.v)
    return o, state


def suffix_sums(g: Tensor) -> Tensor:
    """[..., C, K] to the same shape: row j is g_{j+1} + ... + g_{C-1}, the decay from token j to the end."""
    later = torch.cat([g[..., 1:, :], torch.zeros_like(g[..., :1, :])], dim=-2)
    return later.flip(-2).cumsum(-2).flip(-2)
