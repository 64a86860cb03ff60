"""A Triton kernel that multiplies a program number and a stride in 32 bits."""

import torch
import triton
import triton.language as tl
from skeleton import recurrent


@triton.jit
def _doubled(x, y, stride, n: tl.constexpr):
    inside = tl.arange(0, n)
    value = tl.load(x + tl.program_id(0) * stride + inside)
    tl.store(y + tl.program_id(0).to(tl.int64) * stride + inside, 2 * value)


def recurrent_gdn(q, k, v, g, beta, **options):
    twice = torch.empty_like(v)
    _doubled[(v.shape[0] * v.shape[1] * v.shape[2],)](v, twice, v.shape[3], v.shape[3])
    return recurrent(q, k, twice / 2, g, beta, **options)
