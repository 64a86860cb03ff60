"""DeltaNet one token at a time, in the working precision: what a decoder runs."""

from functools import partial

from torch import Tensor

from kernels.arguments import as_dtype, prepare
from kernels.recurrence import scan_sequences, scan_tokens


def recurrent_delta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    qk_l2norm: bool = False,
    beta_logits: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """DeltaNet, token by token, in float32, or in float64 for float64 inputs.

    The recurrence is DeltaNet (arXiv 2406.06484, Eq. 6); see
    `kernels.delta.reference`. It is the side of claim chunk.equals-recurrent that has no chunks.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H).
    beta [B, T, HV] in [0, 2]; initial_state [N, HV, K, V], default zero; N = B, or
    the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``qk_l2norm``, ``beta_logits`` and ``check``: see
    `kernels.arguments.prepare`.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as `kernels.arguments.prepare` does. Non-finite
    inputs propagate, to later outputs only, unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        None,
        beta,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        qk_l2norm=qk_l2norm,
        beta_logits=beta_logits,
        check=check,
    )
    o, state = scan_sequences(partial(scan_tokens, scale=arguments.scale), arguments[:7])
    return as_dtype(o, v.dtype), state if output_final_state else None
