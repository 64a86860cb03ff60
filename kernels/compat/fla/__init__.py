"""flash-linear-attention's functions by name, with its signatures, argument order, layouts and dtypes.

As there, all but ``naive_chunk_linear_attn`` and the chunkwise delta rule compute in float32 whatever the
input; ``chunk_*`` and ``naive_chunk_*`` are the chunked forms with explicit gradients, ``fused_recurrent_*``
and ``naive_recurrent_*`` the recurrent ones, which autograd differentiates. What differs: any length and any
chunk size are taken, also float32 where the original asks for half precision; bad input (a log decay above 0,
beta outside [0, 2]) is refused in one sentence; so are unknown keywords, which the originals swallow, and
what is not provided: context parallelism, intermediate states, ``gv``. Options that only choose among GPU
kernels (``safe_gate``, ``disable_recompute``, ``use_graph``, ``max_num_seqs``, ``cu_seqlens_cpu``,
``chunk_indices``) change nothing. Written against flash-linear-attention 0.6.
"""

from kernels.compat.fla.delta_rule import (
    chunk_delta_rule,
    delta_rule_chunkwise,
    delta_rule_recurrence,
    fused_recurrent_delta_rule,
)
from kernels.compat.fla.dplr import (
    chunk_dplr_delta_rule,
    dplr_chunkwise,
    dplr_recurrence,
    fused_recurrent_dplr_delta_rule,
)
from kernels.compat.fla.gated_delta_rule import (
    chunk_gated_delta_rule,
    chunk_gdn,
    fused_recurrent_gated_delta_rule,
    fused_recurrent_gdn,
    naive_chunk_gated_delta_rule,
    naive_recurrent_gated_delta_rule,
)
from kernels.compat.fla.gdn2 import (
    chunk_gdn2,
    fused_recurrent_gdn2,
    naive_chunk_gdn2,
    naive_recurrent_gdn2,
)
from kernels.compat.fla.kda import chunk_kda, fused_recurrent_kda, naive_chunk_kda, naive_recurrent_kda
from kernels.compat.fla.linear_attn import (
    chunk_linear_attn,
    fused_chunk_linear_attn,
    fused_recurrent_linear_attn,
    naive_chunk_linear_attn,
    naive_recurrent_linear_attn,
)
from kernels.compat.fla.simple_gla import (
    chunk_simple_gla,
    fused_recurrent_simple_gla,
    naive_chunk_simple_gla,
    naive_recurrent_simple_gla,
)

__all__ = [
    "chunk_delta_rule",
    "chunk_dplr_delta_rule",
    "chunk_gated_delta_rule",
    "chunk_gdn",
    "chunk_gdn2",
    "chunk_kda",
    "chunk_linear_attn",
    "chunk_simple_gla",
    "delta_rule_chunkwise",
    "delta_rule_recurrence",
    "dplr_chunkwise",
    "dplr_recurrence",
    "fused_chunk_linear_attn",
    "fused_recurrent_delta_rule",
    "fused_recurrent_dplr_delta_rule",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gdn",
    "fused_recurrent_gdn2",
    "fused_recurrent_kda",
    "fused_recurrent_linear_attn",
    "fused_recurrent_simple_gla",
    "naive_chunk_gated_delta_rule",
    "naive_chunk_gdn2",
    "naive_chunk_kda",
    "naive_chunk_linear_attn",
    "naive_chunk_simple_gla",
    "naive_recurrent_gated_delta_rule",
    "naive_recurrent_gdn2",
    "naive_recurrent_kda",
    "naive_recurrent_linear_attn",
    "naive_recurrent_simple_gla",
]
