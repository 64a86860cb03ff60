"""DPLR one token at a time, in the working precision: what a decoder runs."""

from torch import Tensor

from kernels.dplr.arguments import prepare
from kernels.dplr.recurrence import scan_tokens
from kernels.recurrence import scan_sequences


def recurrent_dplr(
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
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The generalized delta rule (DPLR), token by token, in float32, or in float64 for float64 inputs.

    The recurrence is that of `kernels.dplr.reference`, and the side of claim chunk.equals-recurrent that has
    no chunks. Differentiable by autograd, which keeps one state per token.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). a, b [B, T,
    HV, K]; g [B, T, HV, K], natural-log decay <= 0 (-inf forgets); initial_state [N, HV, K, V], default zero;
    N = B, or the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or None
    unless ``output_final_state``. Raises ValueError as `kernels.dplr.arguments.prepare` does. Non-finite
    inputs propagate, to later outputs only, unless ``check``.
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
    o, state = scan_sequences(scan_tokens, arguments)
    return o.to(v.dtype), state if output_final_state else None
