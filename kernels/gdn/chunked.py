"""GDN chunk by chunk, in matrix products whose every exponent is at most 0."""

import torch
from torch import Tensor

from kernels.arguments import prepare
from kernels.chunkwise import scan_chunks


def chunked_gdn(
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
    """Gated DeltaNet in chunks of ``chunk_size`` tokens (any size >= 1, any T), differentiable.

    Equal to the recurrence of Gated DeltaNet (arXiv 2412.06464) by claim chunk.equals-recurrent; its range
    rests on kda.chunk-range (an exponent <= 0 never overflows) and its forward substitution on
    kda.neumann-exact-unstable. Computes in float32, or in float64 for float64 inputs.

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV], natural-log decay <= 0 (-inf forgets);
    beta [B, T, HV] in [0, 2]; initial_state [B, HV, K, V] in the working precision, default zero.
    Value head hv reads query and key head hv // (HV // H). ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] in v's dtype and the final state [B, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as ``kernels.arguments.prepare`` does and for
    ``chunk_size`` < 1. Non-finite inputs propagate, to earlier outputs of their chunk too.
    """
    arguments = prepare(q, k, v, g, beta, scale=scale, initial_state=initial_state, gate_per_channel=False)
    o, state = scan_chunks(arguments, decayed_scores, chunk_size)
    return o.to(v.dtype), state if output_final_state else None


def decayed_scores(x: Tensor, y: Tensor, g: Tensor) -> Tensor:
    """Lower triangular [..., C, C] with entry (i, j) = x_i . y_j e^(g_{j+1} + ... + g_i), j <= i.

    x, y [..., C, K]; g [..., C, 1]. One decay for all channels factors out of the dot product.
    """
    return (x @ y.mT) * segment_sums(g).exp()


def segment_sums(g: Tensor) -> Tensor:
    """[..., C, 1] to [..., C, C]: entry (i, j) is g_{j+1} + ... + g_i, and -inf above the diagonal.

    Summing each segment, instead of subtracting two running sums, keeps a gate of -inf exact and every
    entry at most 0; masking the exponent, instead of its exponential, keeps gradients finite.
    """
    lower = torch.ones(g.shape[-2], g.shape[-2], dtype=torch.bool, device=g.device).tril()
    terms = torch.where(lower.tril(-1), g, torch.zeros_like(g))
    return terms.cumsum(-2).masked_fill(~lower, -torch.inf)
