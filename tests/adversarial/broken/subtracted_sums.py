"""E4: backward, the sum of what follows is the total less what came before (fla#1095).

Shows in the gradient of the gate where early terms are far larger than late ones; hides for equal terms.
"""

import functools

import torch
from skeleton import chunked


class Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, g):
        return g.cumsum(1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.sum(1, keepdim=True) - gradient.cumsum(1) + gradient


chunked_gdn = chunked_kda = functools.partial(chunked, sums=Sums.apply)
