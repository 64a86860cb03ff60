"""The chunked delta rule as one differentiable operation, in eager mode and for torch.compile and export."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kernels import chunkwise, chunkwise_backward
from kernels.arguments import Arguments, check_values
from kernels.packing import chunk_count, chunk_rows

_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor? g, Tensor beta"
_LAYOUT = "Tensor? cu_seqlens, float scale, int chunk_size"


def chunked_delta_rule(arguments: Arguments, chunk_size: int) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [N, HV, K, V] in the precision of the prepared arguments.

    Eager calls run `kernels.chunkwise` itself, so that profilers, FLOP counters and every other dispatch
    mode see its operations, forward and backward. Compilers see one opaque operator,
    ``attnproof::chunked_delta_rule``, which runs the same two functions.

    Raises ValueError for ``chunk_size`` < 1.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, but it is {chunk_size}.")
    if torch.compiler.is_compiling():
        o, final, _, _ = torch.ops.attnproof.chunked_delta_rule(*arguments, chunk_size)
        return o, final
    tokens = arguments.v.shape[1]
    # A chunk longer than the sequence would only add neutral rows.
    chunk_size = min(chunk_size, max(tokens, 1))
    if torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in arguments):
        o, final, _, _ = _Chunked.apply(*arguments, chunk_size)
        return o, final
    o, final, _, _ = chunkwise.forward(*arguments, chunk_size)
    return o, final


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """Save what the backward pass needs."""
    *tensors, _, cu_seqlens, ctx.scale, ctx.chunk_size = inputs
    ctx.save_for_backward(*tensors, *output[2:], cu_seqlens)


class _Chunked(torch.autograd.Function):
    """Eager mode: the operations of both passes are visible."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        return tuple(chunkwise.forward(*inputs, save=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[2:])
        _keep(ctx, inputs, output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_o: Tensor, d_final: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        gradients = chunkwise_backward.backward(d_o, d_final, *ctx.saved_tensors, ctx.scale, ctx.chunk_size)
        return (*gradients, None, None, None)


@torch.library.custom_op(
    "attnproof::chunked_delta_rule",
    mutates_args=(),
    schema=f"({_INPUTS}, Tensor state, {_LAYOUT}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _operator(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor | None,
    scale: float,
    chunk_size: int,
) -> tuple[Tensor, ...]:
    check_values(g, beta, cu_seqlens)
    return tuple(chunkwise.forward(q, k, v, g, beta, state, cu_seqlens, scale, chunk_size, save=True))


@_operator.register_fake
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor | None,
    scale: float,
    chunk_size: int,
) -> tuple[Tensor, ...]:
    batch, tokens, heads, values = v.shape
    count = chunk_count(tokens, chunk_size, cu_seqlens)
    states = v.new_empty(batch, heads, count * q.shape[-1], values)
    errors = v.new_empty(batch, heads, count * chunk_rows(chunk_size), values)
    return v.new_empty(v.shape), state.new_empty(state.shape), states, errors


@torch.library.custom_op(
    "attnproof::chunked_delta_rule_backward",
    mutates_args=(),
    schema=f"(Tensor d_o, Tensor d_final, {_INPUTS}, Tensor states, Tensor errors, {_LAYOUT})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _backward_operator(d_o: Tensor, d_final: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    gradients = chunkwise_backward.backward(d_o, d_final, *inputs)
    # An operator returns tensors only: an empty one stands for the gradient of a decay that is not there.
    return tuple(d_o.new_empty(0) if x is None else x for x in gradients)


@_backward_operator.register_fake
def _(d_o: Tensor, d_final: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    q, k, v, g, beta = inputs[:5]
    shapes = (q.shape, k.shape, v.shape, (0,) if g is None else g.shape, beta.shape, d_final.shape)
    return tuple(d_o.new_empty(shape) for shape in shapes)


def _operator_backward(ctx: Any, d_o: Tensor, d_final: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    d_q, d_k, d_v, d_g, d_beta, d_state = torch.ops.attnproof.chunked_delta_rule_backward(
        d_o, d_final, *ctx.saved_tensors, ctx.scale, ctx.chunk_size
    )
    has_decay = ctx.saved_tensors[3] is not None
    return d_q, d_k, d_v, d_g if has_decay else None, d_beta, d_state, None, None, None


_operator.register_autograd(_operator_backward, setup_context=_keep)
