"""The chunkwise scan as one differentiable operation, in eager mode and for torch.compile and export."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kernels.arguments import check_values
from kernels.dplr.arguments import Arguments, no_strength
from kernels.dplr.backward import backward
from kernels.dplr.forward import forward
from kernels.packing import chunk_count, chunk_rows

_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor g, Tensor? a, Tensor? b"
_LAYOUT = "Tensor? cu_seqlens, int chunk_size"


def chunked_scan(arguments: Arguments, chunk_size: int) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [N, HV, K, V] in the precision of the prepared arguments.

    Eager calls run `kernels.dplr.forward` itself, so that every dispatch mode sees its operations, in both
    passes. Compilers see one opaque operator, ``attnproof::chunked_dplr``, which runs the same functions.

    Raises ValueError for ``chunk_size`` < 1.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, but it is {chunk_size}.")
    if torch.compiler.is_compiling():
        o, final, _, _ = torch.ops.attnproof.chunked_dplr(*arguments, chunk_size)
        return o, final
    # A chunk longer than the sequence would only add neutral rows.
    chunk_size = min(chunk_size, max(arguments.v.shape[1], 1))
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arguments):
        o, final, _, _ = _Chunked.apply(*arguments, chunk_size)
        return o, final
    o, final, _, _ = forward(*arguments, chunk_size)
    return o, final


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """Save what the backward pass needs."""
    *tensors, _, cu_seqlens, chunk_size = inputs
    ctx.save_for_backward(*tensors, *output[2:], cu_seqlens)
    ctx.chunk_size = chunk_size


class _Chunked(torch.autograd.Function):
    """Eager mode: the operations of both passes are visible."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        return tuple(forward(*inputs, save=True))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[2:])
        _keep(ctx, inputs, output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_o: Tensor, d_final: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        return (*backward(d_o, d_final, *ctx.saved_tensors, ctx.chunk_size), None, None)


@torch.library.custom_op(
    "attnproof::chunked_dplr",
    mutates_args=(),
    schema=f"({_INPUTS}, Tensor state, {_LAYOUT}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _operator(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    _, _, _, cu_seqlens, _ = rest
    check_values(g, no_strength(v), cu_seqlens)
    return tuple(forward(q, k, v, g, *rest, save=True))


@_operator.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    a, _, state, cu_seqlens, chunk_size = rest
    batch, tokens, heads, values = v.shape
    count = chunk_count(tokens, chunk_size, cu_seqlens)
    states = v.new_empty(batch, heads, count * q.shape[-1], values)
    reads = v.new_empty(batch, heads, 0 if a is None else count * chunk_rows(chunk_size), values)
    return v.new_empty(v.shape), state.new_empty(state.shape), states, reads


@torch.library.custom_op(
    "attnproof::chunked_dplr_backward",
    mutates_args=(),
    schema=f"(Tensor d_o, Tensor d_final, {_INPUTS}, Tensor states, Tensor reads, {_LAYOUT})"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _backward_operator(d_o: Tensor, d_final: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    gradients = backward(d_o, d_final, *inputs)
    # An operator returns tensors only: an empty one stands for the gradient of an argument that is not there.
    return tuple(d_o.new_empty(0) if x is None else x for x in gradients)


@_backward_operator.register_fake
def _(d_o: Tensor, d_final: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    shapes = [(0,) if x is None else x.shape for x in inputs[:6]]
    return tuple(d_o.new_empty(shape) for shape in (*shapes, d_final.shape))


def _operator_backward(ctx: Any, d_o: Tensor, d_final: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    gradients = torch.ops.attnproof.chunked_dplr_backward(d_o, d_final, *ctx.saved_tensors, ctx.chunk_size)
    given = [x is not None for x in ctx.saved_tensors[:6]] + [True]
    return (*(x if there else None for x, there in zip(gradients, given, strict=True)), None, None)


_operator.register_autograd(_operator_backward, setup_context=_keep)
