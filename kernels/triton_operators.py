"""The Triton delta rule as differentiable operations, with an explicit backward pass in Triton."""

from typing import Any

import torch
from torch import Tensor

from kernels import triton_chunkwise, triton_chunkwise_backward, triton_recurrence
from kernels.arguments import Arguments, check_values
from kernels.packing import chunk_count, chunk_rows
from kernels.triton_runtime import check_launch

_TOKENS = "Tensor q, Tensor k, Tensor v, Tensor? g, Tensor beta"
_INPUTS = f"{_TOKENS}, Tensor state, Tensor? cu_seqlens"

_RECURRENT_BACKWARD = (64, "ieee")
"""Tokens per chunk and precision in the backward pass of the recurrent form, which runs the chunks forward
again, as it saves nothing on its way."""


def chunked_delta_rule(arguments: Arguments, chunk_size: int, precision: str) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [N, HV, K, V] in the precision of the prepared arguments.

    Differentiable once, by `kernels.triton_chunkwise_backward`. Raises ValueError for ``chunk_size`` outside
    1 to 64, an unknown ``precision``, more than 128 key channels, and where Triton cannot run.
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


@torch.library.custom_op(
    "attnproof::triton_chunked_delta_rule_backward",
    mutates_args=(),
    schema=f"(Tensor d_o, Tensor d_final, {_TOKENS}, Tensor states, Tensor errors, Tensor? cu_seqlens, "
    "int chunk_size, str precision) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _backward(d_o: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    gradients = triton_chunkwise_backward.backward(d_o, *inputs)
    # An operator returns tensors only: an empty one stands for the gradient of a decay that is not there.
    return tuple(d_o.new_empty(0) if x is None else x for x in gradients)


@_backward.register_fake
def _(d_o: Tensor, d_final: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    q, k, v, g, beta = inputs[:5]
    shapes = (q.shape, k.shape, v.shape, (0,) if g is None else g.shape, beta.shape, d_final.shape)
    return tuple(d_o.new_empty(shape) for shape in shapes)


def _keep_chunks(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, _, cu_seqlens, ctx.chunk_size, ctx.precision = inputs
    ctx.save_for_backward(*tensors, *output[2:], cu_seqlens)


def _chunked_backward(ctx: Any, d_o: Tensor, d_final: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    return *_gradients(d_o, d_final, *ctx.saved_tensors, ctx.chunk_size, ctx.precision), None, None, None


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs)


def _recurrent_backward(ctx: Any, d_o: Tensor, d_final: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, _, cu_seqlens = ctx.saved_tensors
    again = torch.ops.attnproof.triton_chunked_delta_rule
    _, _, states, errors = again(*ctx.saved_tensors, *_RECURRENT_BACKWARD)
    return *_gradients(d_o, d_final, *tensors, states, errors, cu_seqlens, *_RECURRENT_BACKWARD), None


def _gradients(d_o: Tensor, d_final: Tensor, *inputs: Any) -> tuple[Tensor | None, ...]:
    """Of q, which is already scaled, k, v, g, beta and the initial state."""
    d_q, d_k, d_v, d_g, d_beta, d_state = torch.ops.attnproof.triton_chunked_delta_rule_backward(
        d_o, d_final, *inputs
    )
    return d_q, d_k, d_v, None if inputs[3] is None else d_g, d_beta, d_state


_chunked.register_autograd(_chunked_backward, setup_context=_keep_chunks)
_recurrent.register_autograd(_recurrent_backward, setup_context=_keep_inputs)
