"""DPLR chunk by chunk, in matrix products whose every exponent is at most 0."""

from torch import Tensor

from kernels.dplr.arguments import prepare
from kernels.dplr.operator import chunked_scan


def chunked_dplr(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int = 64,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The generalized delta rule (DPLR) in chunks of ``chunk_size`` tokens (any size >= 1, any T).

    Equal to the recurrence of `kernels.dplr.reference` by the steps of claim chunk.equals-recurrent, which is
    proved for a = -b up to a factor; here the tests show it, exactly on integers. No exponent is above 0, so
    none overflows (kda.chunk-range). Computes in float32, or in float64 for float64 inputs. Nothing
    bounds products of transitions for arbitrary a and b, nor hence the entries of the inverse and the
    errors: both grow as the norm of Diag(e^g) + b a^T allows, and stay as small as those of the delta
    rule where it is at most 1. Differentiable once: gradients are explicit, in `kernels.dplr.backward`,
    and need memory for T (K + V) numbers per head and one state per chunk.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). a, b [B, T,
    HV, K]; g [B, T, HV, K], natural-log decay <= 0 (-inf forgets); initial_state [N, HV, K, V], default zero;
    N = B, or the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or None
    unless ``output_final_state``. Raises ValueError as `kernels.dplr.arguments.prepare` does and for
    ``chunk_size`` < 1. Non-finite inputs propagate, to earlier outputs of their chunk too, unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        a,
        b,
        g,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        check=check,
    )
    o, state = chunked_scan(arguments, chunk_size)
    return o.to(v.dtype), state if output_final_state else None
