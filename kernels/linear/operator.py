"""The chunked scan of linear attention as a torch.library operator, with its explicit backward pass."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from kernels.linear.arguments import Arguments, sequences


def scan_forward(
    q: Tensor, k: Tensor, v: Tensor, state: Tensor, cu_seqlens: Tensor | None, chunk_size: int
) -> tuple[Tensor, Tensor]:
    """o [B, H, T, W] and final state [N, H, K, W] of the tensors of ``kernels.linear.arguments.Arguments``.

    Per chunk, with S the state before it: O = Q S + Tril(Q K^T) V and S_next = S + K^T V.
    """
    o, final = torch.zeros_like(v, memory_format=torch.contiguous_format), torch.zeros_like(state)
    for run, tokens in sequences(cu_seqlens, q.shape[2]):
        query, key, value = (_chunks(x[:, :, tokens], chunk_size) for x in (q, k, v))
        before, after = _states(state[run], key.mT @ value)
        parts = query @ before + (query @ key.mT).tril() @ value
        o[:, :, tokens] = _tokens(parts, tokens)
        final[run] = after
    return o, final


def scan_backward(
    grad_o: Tensor,
    grad_final: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor,
    cu_seqlens: Tensor | None,
    chunk_size: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of q, k, v and state.

    With dS the gradient of the state after a chunk, and S the state before it, computed again:
    dQ = dO S^T + Tril(dO V^T) K; dK = V dS^T + Tril(dO V^T)^T Q; dV = K dS + Tril(Q K^T)^T dO; and before the
    chunk the gradient of the state is dS + Q^T dO.
    """
    grad_q, grad_k, grad_v, grad_state = (
        torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (q, k, v, state)
    )
    for run, tokens in sequences(cu_seqlens, q.shape[2]):
        query, key, value, upstream = (_chunks(x[:, :, tokens], chunk_size) for x in (q, k, v, grad_o))
        before, _ = _states(state[run], key.mT @ value)
        after, first = _states(grad_final[run], (query.mT @ upstream).flip(2))
        after = after.flip(2)
        weights = (upstream @ value.mT).tril()
        grad_q[:, :, tokens] = _tokens(upstream @ before.mT + weights @ key, tokens)
        grad_k[:, :, tokens] = _tokens(value @ after.mT + weights.mT @ query, tokens)
        grad_v[:, :, tokens] = _tokens(key @ after + (query @ key.mT).tril().mT @ upstream, tokens)
        grad_state[run] = first
    return grad_q, grad_k, grad_v, grad_state


def _chunks(x: Tensor, chunk_size: int) -> Tensor:
    """[B, H, T, D] to [B, H, chunks, C, D]; rows added to the last chunk are 0 and write nothing."""
    tokens = x.shape[2]
    size = max(1, min(chunk_size, tokens))
    return pad(x, (0, 0, 0, -tokens % size)).unflatten(2, (-1, size))


def _tokens(chunks: Tensor, tokens: slice) -> Tensor:
    """[B, H, chunks, C, D] to [B, H, T, D], without the added rows."""
    return chunks.flatten(2, 3)[:, :, : tokens.stop - tokens.start]


def _states(state: Tensor, writes: Tensor) -> tuple[Tensor, Tensor]:
    """The state [B, H, K, W] before each of the writes [B, H, chunks, K, W], stacked alike, and after all."""
    before = []
    for write in writes.unbind(2):
        before.append(state)
        state = state + write
    return torch.stack(before, dim=2) if before else writes, state


def _fake_forward(q: Tensor, k: Tensor, v: Tensor, state: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return v.new_empty(v.shape), torch.empty_like(state)


def _fake_backward(grad_o: Tensor, grad_final: Tensor, *inputs: Any) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in inputs[:4])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.chunk_size = inputs[5]


def _differentiate(
    backward: Callable[..., tuple[Tensor, ...]], ctx: Any, *upstream: Tensor
) -> tuple[Any, ...]:
    return *backward(*upstream, *ctx.saved_tensors, ctx.chunk_size), None, None


class _Eager(torch.autograd.Function):
    """The two passes as plain torch code."""

    forward = staticmethod(scan_forward)
    setup_context = staticmethod(_save)
    backward = staticmethod(once_differentiable(partial(_differentiate, scan_backward)))


operator = torch.library.custom_op("attnproof::linear", scan_forward, mutates_args=())
operator.register_fake(_fake_forward)
operator_backward = torch.library.custom_op("attnproof::linear_backward", scan_backward, mutates_args=())
operator_backward.register_fake(_fake_backward)
operator.register_autograd(partial(_differentiate, operator_backward), setup_context=_save)


def scan(arguments: Arguments, cu_seqlens: Tensor | None, chunk_size: int) -> tuple[Tensor, Tensor]:
    """``scan_forward`` with its backward pass.

    Eager calls run plain torch code, so that profilers and every other dispatch mode see its operations,
    forward and backward. Compilers see one opaque operator that runs the same code.
    """
    inputs = (*arguments, cu_seqlens, chunk_size)
    if torch.compiler.is_compiling():
        o, final = operator(*inputs)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in arguments):
        o, final = _Eager.apply(*inputs)
    else:
        o, final = scan_forward(*inputs)
    return o, final
