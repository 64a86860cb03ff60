"""DeltaNet one token at a time in Triton: what a decoder on a GPU runs."""

from torch import Tensor

from kernels.arguments import prepare
from kernels.triton_operators import recurrent_delta_rule


def triton_recurrent_delta(
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
    """DeltaNet, token by token, in one kernel with the state in registers.

    Arguments and results are those of `kernels.delta.recurrent.recurrent_delta`, the same recurrence step by
    step: the side of claim chunk.equals-recurrent that has no chunks. Computes in float32, or in float64 for
    float64 inputs, by ordinary additions and multiplications (no tensor cores), within kernel.error-contract.
    Differentiable once: gradients are those of the chunked Triton form in chunks of 64 tokens with "ieee"
    products, which runs forward again. Prepared inputs, in the working precision, are what the kernel reads.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as `kernels.arguments.prepare` does, for more than
    128 key channels, and for tensors that Triton cannot reach: on a CPU it needs TRITON_INTERPRET=1 set
    before triton is imported. Non-finite inputs propagate, to later outputs only, unless ``check``.
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
    o, state = recurrent_delta_rule(arguments)
    return o.to(v.dtype), state if output_final_state else None
