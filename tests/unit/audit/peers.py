"""Torch references of flash-linear-attention and Transformers behind one function.

One worker then imports them once; ``function`` is an extra keyword the test adds to the convention.
"""

from fla.ops.attn.naive import naive_parallel_attn
from fla.ops.gated_delta_rule.naive import naive_chunk_gated_delta_rule, naive_recurrent_gated_delta_rule
from fla.ops.gdn2.naive import naive_chunk_gdn2, naive_recurrent_gdn2
from fla.ops.generalized_delta_rule.dplr.naive import dplr_chunkwise, dplr_recurrence
from fla.ops.kda.naive import naive_chunk_kda, naive_recurrent_kda
from fla.ops.simple_gla.naive import naive_chunk_simple_gla, naive_recurrent_simple_gla
from transformers.models.kimi_linear import modeling_kimi_linear as kimi
from transformers.models.qwen3_next import modeling_qwen3_next as qwen

FUNCTIONS = {
    "naive_recurrent_kda": naive_recurrent_kda,
    "naive_chunk_kda": naive_chunk_kda,
    "naive_recurrent_gated_delta_rule": naive_recurrent_gated_delta_rule,
    "naive_chunk_gated_delta_rule": naive_chunk_gated_delta_rule,
    "naive_recurrent_simple_gla": naive_recurrent_simple_gla,
    "naive_chunk_simple_gla": naive_chunk_simple_gla,
    "naive_recurrent_gdn2": naive_recurrent_gdn2,
    "naive_chunk_gdn2": naive_chunk_gdn2,
    "dplr_recurrence": dplr_recurrence,
    "dplr_chunkwise": dplr_chunkwise,
    "naive_parallel_attn": naive_parallel_attn,
    "torch_chunk_gated_delta_rule": qwen.torch_chunk_gated_delta_rule.__wrapped__,
    "torch_recurrent_gated_delta_rule": qwen.torch_recurrent_gated_delta_rule.__wrapped__,
    "chunk_kimi_delta_attention": kimi.chunk_kimi_delta_attention.__wrapped__,
    "recurrent_kimi_delta_attention": kimi.recurrent_kimi_delta_attention.__wrapped__,
}


def call(*positional, function, **keywords):
    return FUNCTIONS[function](*positional, **keywords)
