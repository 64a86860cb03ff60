"""Performer attention one token at a time, in the working precision: what a decoder runs."""

from torch import Tensor

from kernels.linear.arguments import State
from kernels.linear.recurrent import recurrent_linear
from kernels.performer.arguments import prepare


def recurrent_performer(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    projection: Tensor,
    *,
    scale: float | None = None,
    initial_state: tuple[Tensor, Tensor] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, State | None]:
    """Performer attention, token by token, in float32, or in float64 for float64 inputs.

    Options, shapes and conventions are those of ``kernels.performer.reference.reference_performer``. The
    state per key head is M (V + 1) numbers, whatever T. Returns o [B, T, HV, V] in v's dtype and the final
    state in the working precision, or None unless ``output_final_state``. Raises as the reference does.
    """
    query, key = prepare(q, k, projection, scale)
    o, state = recurrent_linear(
        query,
        key,
        v.to(query.dtype),
        scale=1.0,
        normalise=True,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        check=check,
    )
    return o.to(v.dtype), state
