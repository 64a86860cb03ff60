"""Mamba-2 chunk by chunk, in matrix products whose every exponent is at most 0."""

from torch import Tensor

from kernels.dplr.operator import chunked_scan
from kernels.mamba2.arguments import prepare


def chunked_mamba2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    scale: float = 1.0,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int = 64,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Mamba-2's state-space duality in chunks of ``chunk_size`` tokens (any size >= 1, any T).

    Equal to the recurrence of `kernels.mamba2.reference` by claim chunk.equals-recurrent. No exponent is
    above 0, so none overflows (kda.chunk-range). Computes in float32, or in float64 for float64 inputs;
    errors of chunks add up, and the tests hold them to a count. Nothing is solved; all terms are
    products of inputs and decays of at most 1. Differentiable once: gradients are explicit, in
    `kernels.dplr.backward`, and need memory for T (K + V) numbers per head and one state per chunk.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). g [B, T, HV],
    natural-log decay <= 0 (-inf forgets); initial_state [N, HV, K, V], default zero; N = B, or the number of
    sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets. ``scale`` defaults to 1:
    Mamba-2 has none. With ``A_log`` [HV], g is the raw step instead and ``dt_bias`` [HV] its bias: see
    `kernels.mamba2.arguments.prepare`.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or None
    unless ``output_final_state``. Raises ValueError as `kernels.mamba2.arguments.prepare` does and for
    ``chunk_size`` < 1. Non-finite inputs propagate, to earlier outputs of their chunk too, unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        g,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        A_log=A_log,
        dt_bias=dt_bias,
        check=check,
    )
    o, state = chunked_scan(arguments, chunk_size)
    return o.to(v.dtype), state if output_final_state else None
