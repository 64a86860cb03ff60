"""DeltaNet chunk by chunk, in matrix products."""

from torch import Tensor

from kernels.arguments import prepare
from kernels.operators import chunked_delta_rule


def chunked_delta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int = 32,
    qk_l2norm: bool = False,
    beta_logits: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """DeltaNet in chunks of ``chunk_size`` tokens (any size >= 1, any T), differentiable once.

    Equal to the recurrence of DeltaNet (arXiv 2406.06484) by claim chunk.equals-recurrent.
    The triangular system is inverted by substitution in blocks, whose entries stay small
    (chunk.inverse-bounded), not by powers (kda.neumann-exact-unstable). Computes in float32, or in float64
    for float64 inputs. Errors of chunks add up, as the steps contract (kda.transition-spectrum); the tests
    hold them to a count of the roundings, as kernel.error-contract is proved for the recurrent form alone.
    Gradients are explicit, in `kernels.chunkwise_backward`, and need memory for T (K + V) numbers per head
    and one state per chunk.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H).
    beta [B, T, HV] in [0, 2]; initial_state [N, HV, K, V], default zero; N = B, or
    the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``qk_l2norm``, ``beta_logits`` and ``check``: see
    `kernels.arguments.prepare`.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as `kernels.arguments.prepare` does and for
    ``chunk_size`` < 1. Non-finite inputs propagate, to earlier outputs of their chunk too, unless ``check``.
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
    o, state = chunked_delta_rule(arguments, chunk_size)
    return o.to(v.dtype), state if output_final_state else None
