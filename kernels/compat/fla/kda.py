"""`fla.ops.kda` and `fla.ops.kda.naive`."""

from typing import Any

import torch
from torch import Tensor

from kernels.compat.call import call, gate, known, strength, unsupported
from kernels.kda.chunked import chunked_kda
from kernels.kda.recurrent import recurrent_kda


def naive_recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention token by token: q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV, K], log decay;
    beta [B, T, HV]; state [B, HV, K, V]. Returns o in v's dtype and the final state in float32 or None."""
    return call(
        recurrent_kda,
        dtype=v.dtype,
        tensors={"q": q, "k": k, "v": v, "g": g, "beta": beta},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
    )


def naive_chunk_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor | None]:
    """As ``naive_recurrent_kda``, in chunks of any size, for any T."""
    return call(
        chunked_kda,
        dtype=v.dtype,
        tensors={"q": q, "k": k, "v": v, "g": g, "beta": beta},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        chunk_size=chunk_size,
    )


def chunk_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    disable_recompute: bool = False,
    return_intermediate_states: bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    cu_seqlens_cpu: torch.LongTensor | None = None,
    cp_context: Any = None,
    use_graph: bool = False,
    max_num_seqs: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention in chunks, with the optional fused L2 norm, gate and sigmoid; o in q's dtype.

    Keywords beyond the named ones: A_log [HV], dt_bias [HV * K], chunk_size, transpose_state_layout (the old
    name of ``state_v_first``). ``lower_bound`` selects the bounded gate, as in the original.
    """
    unsupported(cp_context=cp_context, return_intermediate_states=return_intermediate_states)
    A_log, dt_bias, chunk_size, old_v_first = known(
        kwargs, A_log=None, dt_bias=None, chunk_size=64, transpose_state_layout=False
    )
    return call(
        chunked_kda,
        dtype=q.dtype,
        tensors={
            "q": q,
            "k": k,
            "v": v,
            "g": g,
            "beta": strength(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval),
        },
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first or old_v_first,
        cu_seqlens=cu_seqlens,
        chunk_size=chunk_size,
        qk_l2norm=use_qk_l2norm_in_kernel,
        **gate(use_gate_in_kernel, A_log, dt_bias, lower_bound, v),
    )


def fused_recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    lower_bound: float | None = None,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """As ``chunk_kda``, token by token; o in v's dtype."""
    (old_v_first,) = known(kwargs, transpose_state_layout=False)
    return call(
        recurrent_kda,
        dtype=v.dtype,
        tensors={
            "q": q,
            "k": k,
            "v": v,
            "g": g,
            "beta": strength(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval),
        },
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first or old_v_first,
        cu_seqlens=cu_seqlens,
        qk_l2norm=use_qk_l2norm_in_kernel,
        **gate(use_gate_in_kernel, A_log, dt_bias, lower_bound, v),
    )
