"""KDA chunk by chunk in Triton."""

from torch import Tensor

from kernels.arguments import prepare
from kernels.triton_operators import chunked_delta_rule


def triton_chunked_kda(
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
    chunk_size: int = 64,
    precision: str = "ieee",
    qk_l2norm: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    gate_lower_bound: float | None = None,
    beta_logits: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention in chunks of ``chunk_size`` tokens, from 1 to 64 (any T), differentiable once.

    Arguments and results are those of `kernels.kda.chunked.chunked_kda`, and so is the algorithm, equal to
    the recurrence by claim chunk.equals-recurrent: errors E = N (V - (e^G K) S) with N by substitution in
    blocks (chunk.inverse-bounded), not by powers (kda.neumann-exact-unstable).
    Every exponent is a sum of gates, so at most 0 (kda.chunk-range).
    Computes and keeps the state in float32, or in float64 for float64 inputs. With ``precision`` "ieee", the
    default, products are float32 multiplications, with the roundings of the torch form; "tf32x3" forms
    each on tensor cores from three TF32 products, for about 22 bits of each factor. Gradients are
    formed by the same rules, in `kernels.triton_chunkwise_backward`, from the states and errors that this
    forward pass saves: a gate gets those of the exponents that contain it, added up.

    Returns o [B, T, HV, V] in v's dtype and the final state [N, HV, K, V] in the working precision, or
    None unless ``output_final_state``. Raises ValueError as `kernels.arguments.prepare` does, for
    ``chunk_size`` outside 1 to 64, more than 128 key channels or an unknown ``precision``, and for tensors
    that Triton cannot reach: on a CPU it needs TRITON_INTERPRET=1 set before triton is imported. Non-finite
    inputs propagate, to earlier outputs of their chunk too, unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        g,
        beta,
        gate_per_channel=True,
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
    o, state = chunked_delta_rule(arguments, chunk_size, precision)
    return o.to(v.dtype), state if output_final_state else None
