"""GDN-2 chunk by chunk, in matrix products whose every exponent is at most 0."""

from torch import Tensor

from kernels.dplr.operator import chunked_scan
from kernels.gdn2.arguments import prepare


def chunked_gdn2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    b: Tensor,
    w: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int = 64,
    qk_l2norm: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    gate_lower_bound: float | None = None,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet 2 in chunks of ``chunk_size`` tokens (any size >= 1, any T).

    Equal to the recurrence of `kernels.gdn2.reference` by the steps of claim chunk.equals-recurrent, which is
    proved for equal erase and write directions; here the tests show it, exactly on integers. No exponent is
    above 0, so none overflows (kda.chunk-range). Computes in float32, or in float64 for float64 inputs. I
    - k (b * k)^T has a norm above 1 unless b * k is parallel to k (gdn2.norm), so errors may grow where
    those of KDA contract. Differentiable once: gradients are explicit, in `kernels.dplr.backward`, and
    need memory for T (K + V) numbers per head and one state per chunk.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). g [B, T, HV,
    K], natural-log decay <= 0 (-inf forgets); b [B, T, HV, K] and w [B, T, HV, V] in [0, 2]; initial_state
    [N, HV, K, V], default zero; N = B, or the number of sequences packed along T (B = 1) when ``cu_seqlens``
    [N + 1] gives their offsets. ``scale`` defaults to K**-0.5. ``qk_l2norm``, ``A_log``, ``dt_bias`` and
    ``gate_lower_bound``: see `kernels.arguments.prepare`.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or None
    unless ``output_final_state``. Raises ValueError as `kernels.gdn2.arguments.prepare` does and for
    ``chunk_size`` < 1. Non-finite inputs propagate, to earlier outputs of their chunk too, unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        g,
        b,
        w,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        qk_l2norm=qk_l2norm,
        A_log=A_log,
        dt_bias=dt_bias,
        gate_lower_bound=gate_lower_bound,
        check=check,
    )
    o, state = chunked_scan(arguments.as_dplr(), chunk_size)
    return o.to(v.dtype), state if output_final_state else None
