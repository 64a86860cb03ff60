"""`fla.ops.gdn2`."""

from typing import Any

import torch
from torch import Tensor

from kernels.compat.call import call, gate, known, unsupported
from kernels.gdn2.chunked import chunked_gdn2
from kernels.gdn2.recurrent import recurrent_gdn2


def naive_recurrent_gdn2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    b: Tensor,
    w: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GDN-2 token by token: q, k, g, b [B, T, H, K]; v, w [B, T, H, V]; g a log decay, b the erase gate, w
    the write gate; state [B, H, K, V]. Returns o and the final state or None, in float32."""
    return call(
        recurrent_gdn2,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v, "g": g, "b": b, "w": w},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
    )


def naive_chunk_gdn2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    b: Tensor,
    w: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor | None]:
    """As ``naive_recurrent_gdn2``, in chunks of any size."""
    return call(
        chunked_gdn2,
        dtype=torch.float32,
        tensors={"q": q, "k": k, "v": v, "g": g, "b": b, "w": w},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        chunk_size=chunk_size,
    )


def chunk_gdn2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    b: Tensor,
    w: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    cu_seqlens_cpu: torch.LongTensor | None = None,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    disable_recompute: bool = False,
    return_intermediate_states: bool = False,
    state_v_first: bool = False,
    cp_context: Any = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """GDN-2 in chunks, with the optional fused L2 norm and gate; o in q's dtype.

    Keywords beyond the named ones: A_log [H], dt_bias [H * K], chunk_size, transpose_state_layout (the old
    name of ``state_v_first``). ``lower_bound`` selects the bounded gate, as in the original.
    """
    unsupported(cp_context=cp_context, return_intermediate_states=return_intermediate_states)
    A_log, dt_bias, chunk_size, old_v_first = known(
        kwargs, A_log=None, dt_bias=None, chunk_size=64, transpose_state_layout=False
    )
    return call(
        chunked_gdn2,
        dtype=q.dtype,
        tensors={"q": q, "k": k, "v": v, "g": g, "b": b, "w": w},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first or old_v_first,
        cu_seqlens=cu_seqlens,
        chunk_size=chunk_size,
        qk_l2norm=use_qk_l2norm_in_kernel,
        **gate(use_gate_in_kernel, A_log, dt_bias, lower_bound, v),
    )


def fused_recurrent_gdn2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    b: Tensor,
    w: Tensor,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    lower_bound: float | None = None,
    state_v_first: bool = False,
    cu_seqlens: torch.LongTensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """As ``chunk_gdn2``, token by token; o in v's dtype."""
    (old_v_first,) = known(kwargs, transpose_state_layout=False)
    return call(
        recurrent_gdn2,
        dtype=v.dtype,
        tensors={"q": q, "k": k, "v": v, "g": g, "b": b, "w": w},
        scale=scale,
        initial_state=initial_state,
        output_final_state=output_final_state,
        state_v_first=state_v_first or old_v_first,
        cu_seqlens=cu_seqlens,
        qk_l2norm=use_qk_l2norm_in_kernel,
        **gate(use_gate_in_kernel, A_log, dt_bias, lower_bound, v),
    )
