"""Softmax attention tile by tile, with a running maximum and sum: no T x S matrix, forward or backward."""

from torch import Tensor

from kernels.softmax.arguments import Packing, finish, prepare
from kernels.softmax.operator import attend


def tiled_softmax(
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
    tile_size: int = 256,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Softmax attention in float32, or in float64 for float64 inputs; differentiable in every tensor.

    Options, shapes and conventions are those of ``kernels.softmax.reference.reference_softmax``. The forward
    pass is the online softmax of FlashAttention (Dao et al., arXiv 2205.14135, Algorithm 1), right for any
    tiling by claim flash.online-softmax; ``tile_size`` may be any number >= 1. The backward pass computes the
    weights again from the saved logsumexp (arXiv 2205.14135, Algorithm 4). Memory beyond the inputs is
    O(B T H (K + V)) and O(B H tile_size^2), forward and backward; work stays quadratic (claim
    flash.not-linear-cost).

    Every weight is the exponential of a number <= 0, so nothing overflows; hidden keys have weight exactly
    0, and their gradients are 0 and finite. An output depends on no later token, bit for bit, as long as
    that token is finite; non-finite q, k, v propagate, to earlier outputs of their tile too. Inputs whose
    weights and sums are representable give exact results (kernel.integer-exact).

    Returns o [B, T, H, V] in v's dtype and the logsumexp [B, T, H] in the working precision (natural log), or
    None unless ``output_logsumexp``. Raises ValueError as ``kernels.softmax.arguments`` does, with ``check``
    also for non-finite q, k, v, and for ``tile_size`` < 1.
    """
    if tile_size < 1:
        raise ValueError(f"tile_size must be at least 1, but it is {tile_size}.")
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
    o, logsumexp = attend(arguments, packing, causal, window, tile_size)
    o, logsumexp = finish(o, logsumexp, v.dtype)
    return o, logsumexp if output_logsumexp else None
