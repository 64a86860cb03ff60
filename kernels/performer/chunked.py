"""Performer attention chunk by chunk, in matrix products."""

from torch import Tensor

from kernels.linear.arguments import State
from kernels.linear.chunked import chunked_linear
from kernels.performer.arguments import prepare


def chunked_performer(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    projection: Tensor,
    *,
    scale: float | None = None,
    initial_state: tuple[Tensor, Tensor] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int = 64,
    check: bool = False,
) -> tuple[Tensor, State | None]:
    """Performer attention in chunks of ``chunk_size`` tokens (any size >= 1, any T), differentiable.

    Options, shapes and conventions are those of ``kernels.performer.reference.reference_performer``,
    numerics, memory O(T (M + V)) and backward pass those of ``kernels.linear.chunked.chunked_linear``
    on the features. Returns o [B, T, HV, V] in v's dtype and the final state in the working precision, or
    None unless ``output_final_state``. Raises as the reference does, and for ``chunk_size`` < 1.
    """
    query, key = prepare(q, k, projection, scale)
    o, state = chunked_linear(
        query,
        key,
        v.to(query.dtype),
        scale=1.0,
        normalise=True,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        chunk_size=chunk_size,
        check=check,
    )
    return o.to(v.dtype), state
