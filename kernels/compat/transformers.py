"""Transformers' torch functions for Gated DeltaNet (Qwen3-Next) and Kimi Delta Attention (Kimi-Linear).

Names, signatures, argument order, layouts and dtypes are theirs: [B, T, H, D], float32 inside, scale K**-0.5,
state [B, HV, K, V] in float32, o in query's dtype. What differs: key heads may be fewer than value heads in
Kimi Delta Attention too; ``cu_seqlens`` among the keywords keeps packed sequences apart, where theirs refuses
it without flash-linear-attention; other keywords are ignored, as theirs does; bad input (a log decay above 0,
beta outside [0, 2]) is refused in one sentence. Written against Transformers 5.24.
"""

from typing import Any

from torch import Tensor

from kernels.compat.call import call
from kernels.gdn.chunked import chunked_gdn
from kernels.gdn.recurrent import recurrent_gdn
from kernels.kda.chunked import chunked_kda
from kernels.kda.recurrent import recurrent_kda


def torch_chunk_gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    chunk_size: int = 64,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet in chunks; g and beta [B, T, HV], g a log decay."""
    return call(
        chunked_gdn,
        dtype=query.dtype,
        tensors={"q": query, "k": key, "v": value, "g": g, "beta": beta},
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=kwargs.get("cu_seqlens"),
        chunk_size=chunk_size,
        qk_l2norm=use_qk_l2norm_in_kernel,
    )


def torch_recurrent_gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet token by token."""
    return call(
        recurrent_gdn,
        dtype=query.dtype,
        tensors={"q": query, "k": key, "v": value, "g": g, "beta": beta},
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=kwargs.get("cu_seqlens"),
        qk_l2norm=use_qk_l2norm_in_kernel,
    )


def recurrent_kimi_delta_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor | None,
    output_final_state: bool,
    use_qk_l2norm_in_kernel: bool = False,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention token by token; g [B, T, HV, K], log decay per key channel."""
    return call(
        recurrent_kda,
        dtype=query.dtype,
        tensors={"q": query, "k": key, "v": value, "g": g, "beta": beta},
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=kwargs.get("cu_seqlens"),
        qk_l2norm=use_qk_l2norm_in_kernel,
    )


def chunk_kimi_delta_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    chunk_size: int = 64,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """Kimi Delta Attention in chunks."""
    return call(
        chunked_kda,
        dtype=query.dtype,
        tensors={"q": query, "k": key, "v": value, "g": g, "beta": beta},
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=kwargs.get("cu_seqlens"),
        chunk_size=chunk_size,
        qk_l2norm=use_qk_l2norm_in_kernel,
    )
