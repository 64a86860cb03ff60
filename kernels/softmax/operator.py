"""Tiled softmax attention as a torch.library operator, with its explicit backward pass."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kernels.softmax.arguments import Arguments, Packing, check_values, sequences
from kernels.softmax.backward import attend_sequence_backward
from kernels.softmax.forward import attend_sequence


def attend_forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    slopes: Tensor | None,
    sink: Tensor | None,
    cu_seqlens: Tensor | None,
    cu_seqlens_k: Tensor | None,
    causal: bool,
    window: int | None,
    tile_size: int,
) -> tuple[Tensor, Tensor]:
    """o [B, HKV, G, T, V] and logsumexp [B, HKV, G, T] of the tensors of ``Arguments``."""
    check_values(g, slopes)
    o, logsumexp = q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_zeros(q.shape[:-1])
    for queries, keys in sequences(Packing(cu_seqlens, cu_seqlens_k), q.shape[-2], k.shape[-2]):
        part = _part(Arguments(q, k, v, g, slopes, sink), queries, keys)
        outputs = o[..., queries, :], logsumexp[..., queries]
        attend_sequence(part, causal, window, tile_size, *outputs)
    return o, logsumexp


def attend_backward(
    grad_o: Tensor,
    grad_logsumexp: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    slopes: Tensor | None,
    sink: Tensor | None,
    o: Tensor,
    logsumexp: Tensor,
    cu_seqlens: Tensor | None,
    cu_seqlens_k: Tensor | None,
    causal: bool,
    window: int | None,
    tile_size: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of q, k, v, g, slopes, sink; an empty tensor for each that is None."""
    arguments = Arguments(q, k, v, g, slopes, sink)
    gradients = _gradients(arguments)
    # The weighted mean of the gradients of a row's exponents: sum_j p_j (grad_o . v_j) = grad_o . o.
    mean = (grad_o * o).sum(-1) - grad_logsumexp
    for queries, keys in sequences(Packing(cu_seqlens, cu_seqlens_k), q.shape[-2], k.shape[-2]):
        attend_sequence_backward(
            _part(arguments, queries, keys),
            causal,
            window,
            tile_size,
            logsumexp[..., queries],
            grad_o[..., queries, :],
            mean[..., queries],
            _part(gradients, queries, keys),
        )
    if sink is not None:
        weight = (sink.unsqueeze(-1) - logsumexp.masked_fill(logsumexp == -torch.inf, 0.0)).exp()
        gradients = gradients._replace(sink=-(weight * mean).sum((0, 3)))
    absent = q.new_zeros(0)
    grad_g, grad_slopes, grad_sink = (absent.clone() if x is None else x for x in gradients[3:])
    return gradients.q, gradients.k, gradients.v, grad_g, grad_slopes, grad_sink


def _part(arguments: Arguments, queries: slice, keys: slice) -> Arguments:
    """Views of one packed sequence."""
    q, k, v, g, slopes, sink = arguments
    g = None if g is None else g[..., keys]
    return Arguments(q[..., queries, :], k[:, :, keys], v[:, :, keys], g, slopes, sink)


def _gradients(arguments: Arguments) -> Arguments:
    """Zeros for every gradient."""
    q, k, v, g, slopes, sink = arguments

    def zeros(x: Tensor) -> Tensor:
        return torch.zeros_like(x, memory_format=torch.contiguous_format)

    return Arguments(
        zeros(q),
        zeros(k),
        zeros(v),
        None if g is None else zeros(g),
        None if slopes is None else zeros(slopes),
        None if sink is None else zeros(sink),
    )


def _fake_forward(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty(*q.shape[:-1], v.shape[-1]), q.new_empty(q.shape[:-1])


def _fake_backward(grad_o: Tensor, grad_logsumexp: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    tensors = arguments[:6]
    return tuple(arguments[0].new_zeros(0) if x is None else x.new_empty(x.shape) for x in tensors)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:6], *output, *inputs[6:8])
    ctx.options = inputs[8:]


def _differentiate(
    backward: Callable[..., tuple[Tensor, ...]], ctx: Any, *upstream: Tensor
) -> tuple[Any, ...]:
    gradients = backward(*upstream, *ctx.saved_tensors, *ctx.options)
    tensors = ctx.saved_tensors[:6]
    kept = (None if x is None else gradient for x, gradient in zip(tensors, gradients, strict=True))
    return *kept, None, None, None, None, None


class _Eager(torch.autograd.Function):
    """The two passes as plain torch code."""

    forward = staticmethod(attend_forward)
    setup_context = staticmethod(_save)
    backward = staticmethod(once_differentiable(partial(_differentiate, attend_backward)))


operator = torch.library.custom_op("attnproof::softmax", attend_forward, mutates_args=())
operator.register_fake(_fake_forward)
operator_backward = torch.library.custom_op("attnproof::softmax_backward", attend_backward, mutates_args=())
operator_backward.register_fake(_fake_backward)
operator.register_autograd(partial(_differentiate, operator_backward), setup_context=_save)


def attend(
    arguments: Arguments, packing: Packing, causal: bool, window: int | None, tile_size: int
) -> tuple[Tensor, Tensor]:
    """``attend_forward`` with its backward pass.

    Eager calls run plain torch code, so that profilers and every other dispatch mode see its operations,
    forward and backward. Compilers see one opaque operator that runs the same code.
    """
    inputs = (*arguments, *packing, causal, window, tile_size)
    if torch.compiler.is_compiling():
        o, logsumexp = operator(*inputs)
    elif torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arguments):
        o, logsumexp = _Eager.apply(*inputs)
    else:
        o, logsumexp = attend_forward(*inputs)
    return o, logsumexp
