"""GDN one token at a time, in the working precision: what a decoder runs."""

from functools import partial

from torch import Tensor

from kernels.arguments import as_dtype, prepare
from kernels.recurrence import scan_sequences, scan_tokens


def recurrent_gdn(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    qk_l2norm: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    gate_lower_bound: float | None = None,
    beta_logits: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet, token by token, in float32, or in float64 for float64 inputs.

    The recurrence is Gated DeltaNet (arXiv 2412.06464, gated delta rule); see
    `kernels.gdn.reference`. It is the side of claim chunk.equals-recurrent that has no chunks.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H).
    g [B, T, HV], natural-log decay <= 0 (-inf forgets);
    beta [B, T, HV] in [0, 2]; initial_state [N, HV, K, V], default zero; N = B, or
    the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``qk_l2norm``, ``A_log``, ``dt_bias``, ``gate_lower_bound``, ``beta_logits`` and ``check``: see
    `kernels.arguments.prepare`.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as `kernels.arguments.prepare` does. Non-finite
    inputs propagate, to later outputs only, unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        g,
        beta,
        gate_per_channel=False,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        qk_l2norm=qk_l2norm,
        A_log=A_log,
        dt_bias=dt_bias,
        gate_lower_bound=gate_lower_bound,
        beta_logits=beta_logits,
        check=check,
    )
    o, state = scan_sequences(partial(scan_tokens, scale=arguments.scale), arguments[:7])
    return as_dtype(o, v.dtype), state if output_final_state else None
