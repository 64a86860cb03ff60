"""Linear attention chunk by chunk, in matrix products, with an explicit backward pass."""

from torch import Tensor

from kernels.linear.arguments import State, finish, prepare
from kernels.linear.features import FeatureMap
from kernels.linear.operator import scan


def chunked_linear(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    feature_map: FeatureMap = "identity",
    normalise: bool = False,
    initial_state: State | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int = 64,
    check: bool = False,
) -> tuple[Tensor, State | None]:
    """Linear attention in chunks of ``chunk_size`` tokens (any size >= 1, any T), differentiable.

    Options, shapes and conventions are those of ``kernels.linear.reference.reference_linear``. Equal to the
    recurrence by claim chunk.equals-recurrent, whatever the chunk size (chunk.knob); on integers whose sums
    are representable, bit for bit (kernel.integer-exact). The backward pass is explicit, for every feature
    map: forward and backward need O(T (K' + V)) memory and one state per chunk. The feature map itself is
    differentiated by autograd.

    Returns o [B, T, HV, V] in v's dtype and the final state in the working precision (float32, or float64 for
    float64 inputs), or None unless ``output_final_state``. Raises ValueError as ``kernels.linear.arguments``
    does and for ``chunk_size`` < 1. An output depends on no later token, bit for bit, as long as that token
    is finite; non-finite input propagates, to earlier outputs of its chunk too, and raises under ``check``.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, but it is {chunk_size}.")
    arguments = prepare(
        q,
        k,
        v,
        scale=scale,
        feature_map=feature_map,
        normalise=normalise,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        check=check,
    )
    o, final = scan(arguments, cu_seqlens, chunk_size)
    o, state = finish(o, final, v, normalise, output_final_state)
    return o.to(v.dtype), state
