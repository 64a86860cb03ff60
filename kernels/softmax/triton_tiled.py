"""Softmax attention tile by tile in Triton, with a running maximum and sum: no T x S matrix."""

from typing import Any

import torch
from torch import Tensor

from kernels.softmax.arguments import Packing, check_values, finish, prepare
from kernels.softmax.triton_backward import backward
from kernels.softmax.triton_forward import forward
from kernels.triton_runtime import check_launch

TILES = (16, 32, 64, 128)


def triton_softmax(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    *,
    scale: float | None = None,
    causal: bool = True,
    window: int | None = None,
    sink: Tensor | None = None,
    slopes: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    output_logsumexp: bool = False,
    tile_size: int = 64,
    precision: str = "ieee",
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Softmax attention in float32, or in float64 for float64 inputs; differentiable in every tensor.

    Options, shapes and conventions are those of ``kernels.softmax.reference.reference_softmax``. The
    algorithm is that of ``kernels.softmax.tiled.tiled_softmax``, the online softmax of FlashAttention (Dao et
    al., arXiv 2205.14135, Algorithm 1), right for any tiling by claim flash.online-softmax; ``tile_size`` is
    16, 32, 64 or 128. The backward pass forms the weights again from the saved logsumexp, in the same tiles.
    Memory beyond the inputs is O(B T H (K + V)), and with a decay one number per pair of tiles for its
    gradient; work stays quadratic (claim flash.not-linear-cost).

    Every weight is the exponential of a number <= 0, so nothing overflows; hidden keys have weight exactly
    0. With ``precision`` "ieee", the default, products are float32 multiplications; "tf32x3" forms each on
    tensor cores from three TF32 products, for about 22 bits of each factor. An output depends on no later
    token, bit for bit, as long as that token is finite.

    Returns o [B, T, H, V] in v's dtype and the logsumexp [B, T, H] in the working precision (natural log), or
    None unless ``output_logsumexp``. Raises ValueError as ``kernels.softmax.arguments`` does, with ``check``
    also for non-finite q, k, v; for another ``tile_size`` or ``precision``, more than 128 channels, and
    tensors that Triton cannot reach: on a CPU it needs TRITON_INTERPRET=1 set before triton is imported.
    """
    if tile_size not in TILES:
        raise ValueError(f"tile_size must be 16, 32, 64 or 128 in the Triton form, but it is {tile_size}.")
    packing = Packing(cu_seqlens, cu_seqlens_k)
    arguments = prepare(
        q,
        k,
        v,
        g,
        scale=scale,
        slopes=slopes,
        sink=sink,
        causal=causal,
        window=window,
        packing=packing,
        check=check,
    )
    check_launch(precision, q=q, v=v)
    o, logsumexp = _attend(*arguments, *packing, causal, window, tile_size, precision)
    o, logsumexp = finish(o, logsumexp, v.dtype)
    return o, logsumexp if output_logsumexp else None


@torch.library.custom_op("attnproof::triton_softmax", mutates_args=())
def _attend(
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
    precision: str,
) -> tuple[Tensor, Tensor]:
    check_values(g, slopes)
    return forward(q, k, v, g, slopes, sink, cu_seqlens, cu_seqlens_k, causal, window, tile_size, precision)


@_attend.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty(*q.shape[:-1], v.shape[-1]), q.new_empty(q.shape[:-1])


@torch.library.custom_op("attnproof::triton_softmax_backward", mutates_args=())
def _attend_backward(
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
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    inputs = (grad_o, grad_logsumexp, q, k, v, g, slopes, sink, o, logsumexp, cu_seqlens, cu_seqlens_k)
    gradients = backward(*inputs, causal, window, tile_size, precision)
    d_q, d_k, d_v, *others = (q.new_empty(0) if x is None else x for x in gradients)
    return d_q, d_k, d_v, others[0], others[1], others[2]


@_attend_backward.register_fake
def _(grad_o: Tensor, grad_logsumexp: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    return tuple(grad_o.new_empty(0 if x is None else x.shape) for x in arguments[:6])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:6], *output, *inputs[6:8])
    ctx.options = inputs[8:]


def _differentiate(ctx: Any, grad_o: Tensor, grad_logsumexp: Tensor) -> tuple[Tensor | None, ...]:
    gradients = _attend_backward(grad_o, grad_logsumexp, *ctx.saved_tensors, *ctx.options)
    tensors = ctx.saved_tensors[:6]
    kept = (None if x is None else gradient for x, gradient in zip(tensors, gradients, strict=True))
    return *kept, None, None, None, None, None, None


_attend.register_autograd(_differentiate, setup_context=_save)
