"""`fla.ops.gated_delta_rule` and its naive functions."""

from typing import Any

import torch
from torch import Tensor

from kernels.compat.call import call, gate, known, strength, unsupported
from kernels.gdn.chunked import chunked_gdn
from kernels.gdn.recurrent import recurrent_gdn
from kernels.kda.recurrent import recurrent_kda


def naive_recurrent_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    g: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet token by token; mind the order of beta and g. q, k [B, T, H, K]; v [B, T, H, V]; beta,
    g [B, T, H], g a log decay; state [B, H, K, V]. Returns o and the final state or None, in float32."""
    return call(
        recurrent_gdn,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v, "g": g, "beta": beta},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
    )


def naive_chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    chunk_size: int = 64,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """As ``naive_recurrent_gated_delta_rule``, in chunks, with g before beta."""
    return call(
        chunked_gdn,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v, "g": g, "beta": beta},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        chunk_size=chunk_size,
    )


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    cu_seqlens_cpu: torch.LongTensor | None = None,
    chunk_indices: torch.LongTensor | None = None,
    cp_context: Any = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet in chunks, with the optional fused L2 norm, gate and sigmoid; o in q's dtype.

    v may have more heads than q and k. Keywords beyond the named ones: use_gate_in_kernel, A_log [HV],
    dt_bias [HV], chunk_size, transpose_state_layout (the old name of ``state_v_first``).
    """
    unsupported(cp_context=cp_context)
    use_gate, A_log, dt_bias, chunk_size, old_v_first = known(
        kwargs,
        use_gate_in_kernel=False,
        A_log=None,
        dt_bias=None,
        chunk_size=64,
        transpose_state_layout=False,
    )
    return call(
        chunked_gdn,
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
        **gate(use_gate, A_log, dt_bias, None, v),
    )


chunk_gdn = chunk_gated_delta_rule


def fused_recurrent_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    gk: Tensor | None = None,
    gv: Tensor | None = None,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """As ``chunk_gated_delta_rule``, token by token; o in v's dtype.

    g [B, T, HV] and gk [B, T, HV, K] are log decays per head and per key channel, none when not given, both
    when both are. beta is 1 when not given, and has no value channels.
    """
    unsupported(gv=gv)
    (old_v_first,) = known(kwargs, transpose_state_layout=False)
    raw = gate(use_gate_in_kernel, A_log, dt_bias, None, v)
    if raw and (g is None or gk is not None):
        raise ValueError("use_gate_in_kernel needs the raw gate g, and gk must be None.")
    kernel, decay = recurrent_gdn, torch.zeros(v.shape[:3], device=v.device) if g is None else g.float()
    if gk is not None:
        if gk.shape != (*decay.shape, q.shape[-1]):
            raise ValueError(
                f"gk must have shape {[*decay.shape, q.shape[-1]]}, but its shape is {list(gk.shape)}."
            )
        kernel, decay = recurrent_kda, decay.unsqueeze(-1) + gk.float()
    beta = torch.ones(v.shape[:3], device=v.device) if beta is None else beta
    return call(
        kernel,
        dtype=v.dtype,
        tensors={
            "q": q,
            "k": k,
            "v": v,
            "g": decay,
            "beta": strength(beta, use_beta_sigmoid_in_kernel, allow_neg_eigval),
        },
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first or old_v_first,
        cu_seqlens=cu_seqlens,
        qk_l2norm=use_qk_l2norm_in_kernel,
        **raw,
    )


fused_recurrent_gdn = fused_recurrent_gated_delta_rule
