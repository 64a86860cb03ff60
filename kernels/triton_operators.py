"""The Triton delta rule as differentiable operations: Triton forward, explicit torch backward."""

from typing import Any

import torch
from torch import Tensor

import kernels.operators  # noqa: F401 - its operators are the backward pass
from kernels import triton_chunkwise, triton_recurrence
from kernels.arguments import Arguments, check_values
from kernels.packing import chunk_count, chunk_rows
from kernels.triton_runtime import check_launch

_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor? g, Tensor beta, Tensor state, Tensor? cu_seqlens"

_BACKWARD_CHUNK = 64
"""Tokens per chunk in the backward pass of the recurrent form, which saves nothing on its way forward."""


def chunked_delta_rule(arguments: Arguments, chunk_size: int, precision: str) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [N, HV, K, V] in the precision of the prepared arguments.

    Differentiable once, by `kernels.chunkwise_backward`. Raises ValueError for ``chunk_size`` outside 1 to
    64, an unknown ``precision``, more than 128 key channels, and where Triton cannot run.
    """
    if not 1 <= chunk_size <= triton_chunkwise.MOST_ROWS:
        most = triton_chunkwise.MOST_ROWS
        raise ValueError(f"chunk_size must be from 1 to {most} in a Triton form, but it is {chunk_size}.")
    check_launch(precision, q=arguments.q)
    o, final, _, _ = torch.ops.attnproof.triton_chunked_delta_rule(*arguments.scaled(), chunk_size, precision)
    return o, final


def recurrent_delta_rule(arguments: Arguments) -> tuple[Tensor, Tensor]:
    """The same, token by token. Raises ValueError for over 128 key channels and where Triton cannot run."""
    check_launch(q=arguments.q)
    o, final = torch.ops.attnproof.triton_recurrent_delta_rule(*arguments.scaled())
    return o, final


@torch.library.custom_op(
    "attnproof::triton_chunked_delta_rule",
    mutates_args=(),
    schema=f"({_INPUTS}, int chunk_size, str precision) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _chunked(*inputs: Any) -> tuple[Tensor, ...]:
    _, _, _, g, beta, _, cu_seqlens, _, _ = inputs
    check_values(g, beta, cu_seqlens)
    return tuple(triton_chunkwise.forward(*inputs))


@_chunked.register_fake
def _(*inputs: Any) -> tuple[Tensor, ...]:
    q, _, v, _, _, state, cu_seqlens, chunk_size, _ = inputs
    batch, tokens, heads, values = v.shape
    count = chunk_count(tokens, chunk_size, cu_seqlens)
    states = v.new_empty(batch, heads, count * q.shape[-1], values)
    errors = v.new_empty(batch, heads, count * chunk_rows(chunk_size), values)
    return v.new_empty(v.shape), state.new_empty(state.shape), states, errors


@torch.library.custom_op(
    "attnproof::triton_recurrent_delta_rule",
    mutates_args=(),
    schema=f"({_INPUTS}) -> (Tensor, Tensor)",
)
def _recurrent(*inputs: Any) -> tuple[Tensor, ...]:
    _, _, _, g, beta, _, cu_seqlens = inputs
    check_values(g, beta, cu_seqlens)
    return triton_recurrence.forward(*inputs)


@_recurrent.register_fake
def _(*inputs: Any) -> tuple[Tensor, ...]:
    v, state = inputs[2], inputs[5]
    return v.new_empty(v.shape), state.new_empty(state.shape)


def _keep_chunks(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, _, cu_seqlens, chunk_size, _ = inputs
    ctx.save_for_backward(*tensors, *output[2:], cu_seqlens)
    ctx.chunk_size = chunk_size


def _chunked_backward(ctx: Any, d_o: Tensor, d_final: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    return *_gradients(d_o, d_final, *ctx.saved_tensors, chunk_size=ctx.chunk_size), None, None, None


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs)


def _recurrent_backward(ctx: Any, d_o: Tensor, d_final: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, _, cu_seqlens = ctx.saved_tensors
    _, _, states, errors = torch.ops.attnproof.chunked_delta_rule(*ctx.saved_tensors, 1.0, _BACKWARD_CHUNK)
    saved = *tensors, states, errors, cu_seqlens
    return *_gradients(d_o, d_final, *saved, chunk_size=_BACKWARD_CHUNK), None


def _gradients(d_o: Tensor, d_final: Tensor, *inputs: Any, chunk_size: int) -> tuple[Tensor | None, ...]:
    """Of q, which is already scaled, k, v, g, beta and the initial state."""
    d_q, d_k, d_v, d_g, d_beta, d_state = torch.ops.attnproof.chunked_delta_rule_backward(
        d_o, d_final, *inputs, 1.0, chunk_size
    )
    return d_q, d_k, d_v, None if inputs[3] is None else d_g, d_beta, d_state


_chunked.register_autograd(_chunked_backward, setup_context=_keep_chunks)
_recurrent.register_autograd(_recurrent_backward, setup_context=_keep_inputs)
