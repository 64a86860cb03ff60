"""KDA chunk by chunk, in matrix products whose every exponent is at most 0."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernels.arguments import prepare
from kernels.chunkwise import scan_chunks, suffix_sums


def chunked_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention in chunks of ``chunk_size`` tokens (any size >= 1, any T), differentiable.

    Equal to the recurrence of Kimi Linear (arXiv 2510.26692, Eq. 1) by claim chunk.equals-recurrent; its
    range rests on kda.chunk-range (an exponent <= 0 never overflows) and its forward substitution on
    kda.neumann-exact-unstable. Computes in float32, or in float64 for float64 inputs.

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV, K], natural-log decay <= 0 (-inf forgets);
    beta [B, T, HV] in [0, 2]; initial_state [B, HV, K, V] in the working precision, default zero.
    Value head hv reads query and key head hv // (HV // H). ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] in v's dtype and the final state [B, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as ``kernels.arguments.prepare`` does and for
    ``chunk_size`` < 1. Non-finite inputs propagate, to earlier outputs of their chunk too.
    """
    arguments = prepare(q, k, v, g, beta, scale=scale, initial_state=initial_state, gate_per_channel=True)
    o, state = scan_chunks(arguments, decayed_scores, chunk_size)
    return o.to(v.dtype), state if output_final_state else None


def decayed_scores(x: Tensor, y: Tensor, g: Tensor) -> Tensor:
    """Lower triangular [..., C, C] with entry (i, j) = sum_k x_ik y_jk e^(g_{j+1,k} + ... + g_{i,k}), j <= i.

    x, y, g [..., C, K]. Diagonal blocks of 1, 2, 4, ... rows are paired: between the two blocks of a pair the
    decay factors at their border into (border to i) times (j to border). Both exponents are sums of gates,
    so at most 0; no pair later than i is formed, so there is nothing to mask; and no [C, C, K] array exists.
    """
    rows = x.shape[-2]
    size = 1 << (rows - 1).bit_length()
    # An added row is never on the earlier side of a pair with a true row, and its own row is cut off below.
    x, y, g = (pad(tensor, (0, 0, 0, size - rows)) for tensor in (x, y, g))
    blocks = (x * y).sum(-1)[..., None, None]
    for width in (1 << level for level in range(size.bit_length() - 1)):
        x_pairs, y_pairs, g_pairs = (_pair(tensor, width) for tensor in (x, y, g))
        later = x_pairs[..., 1, :, :] * g_pairs[..., 1, :, :].cumsum(-2).exp()
        earlier = y_pairs[..., 0, :, :] * suffix_sums(g_pairs[..., 0, :, :]).exp()
        cross = later @ earlier.mT
        first, second = blocks[..., 0::2, :, :], blocks[..., 1::2, :, :]
        upper = torch.cat([first, torch.zeros_like(cross)], dim=-1)
        blocks = torch.cat([upper, torch.cat([cross, second], dim=-1)], dim=-2)
    return blocks[..., 0, :rows, :rows]


def _pair(rows: Tensor, width: int) -> Tensor:
    """[..., C, K] to [..., C / (2 width), 2, width, K]."""
    return rows.reshape(*rows.shape[:-2], rows.shape[-2] // (2 * width), 2, width, rows.shape[-1])
