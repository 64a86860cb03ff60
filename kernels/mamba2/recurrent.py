"""Mamba-2 one token at a time, in the working precision: what a decoder runs."""

from torch import Tensor

from kernels.dplr.recurrence import scan_tokens
from kernels.mamba2.arguments import prepare
from kernels.recurrence import scan_sequences


def recurrent_mamba2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    scale: float = 1.0,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Mamba-2's state-space duality, token by token, in float32, or in float64 for float64 inputs.

    The recurrence is that of `kernels.mamba2.reference`, and the side of claim chunk.equals-recurrent that
    has no chunks. Differentiable by autograd, which keeps one state per token.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). g [B, T, HV],
    natural-log decay <= 0 (-inf forgets); initial_state [N, HV, K, V], default zero; N = B, or the number of
    sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets. ``scale`` defaults to 1:
    Mamba-2 has none. With ``A_log`` [HV], g is the raw step instead and ``dt_bias`` [HV] its bias: see
    `kernels.mamba2.arguments.prepare`.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or None
    unless ``output_final_state``. Raises ValueError as `kernels.mamba2.arguments.prepare` does. Non-finite
    inputs propagate, to later outputs only, unless ``check``.
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
    o, state = scan_sequences(scan_tokens, arguments)
    return o.to(v.dtype), state if output_final_state else None
