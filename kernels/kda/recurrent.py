"""KDA one token at a time, in the working precision: what a decoder runs."""

from torch import Tensor

from kernels.arguments import prepare
from kernels.recurrence import scan_tokens


def recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention, token by token, in float32, or in float64 for float64 inputs.

    The recurrence is Kimi Linear, arXiv 2510.26692, Eq. 1; see ``kernels.kda.reference``. It is the side of
    claim chunk.equals-recurrent that has no chunks.

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV, K], natural-log decay <= 0 (-inf forgets);
    beta [B, T, HV] in [0, 2]; initial_state [B, HV, K, V] in the working precision, default zero.
    Value head hv reads query and key head hv // (HV // H). ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] in v's dtype and the final state [B, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as ``kernels.arguments.prepare`` does.
    Non-finite inputs propagate, to later outputs only.
    """
    arguments = prepare(q, k, v, g, beta, scale=scale, initial_state=initial_state, gate_per_channel=True)
    o, state = scan_tokens(arguments)
    return o.to(v.dtype), state if output_final_state else None
