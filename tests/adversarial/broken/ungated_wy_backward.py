"""G1: backward, the keys that erase the state at a chunk's start get no gradient without gates (fla#863).

Shows in the gradient of k; hides when gates are given, or when that state is 0.
"""

import torch
from skeleton import chunked, decayed


def without_gradient(running, key):
    return decayed(running, key.detach())


def chunked_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return chunked(q, k, v, g, beta, scale=scale, **options)


def chunked_delta(q, k, v, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    g = torch.zeros_like(beta)
    return chunked(q, k, v, g, beta, scale=scale, erasing=without_gradient, **options)
