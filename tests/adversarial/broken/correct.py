"""Correct kernels of the kinds that were reported as wrong: none may be flagged."""

import functools

import torch
from attention import tiled
from skeleton import chunked, recurrent

tiled_softmax = tiled
chunked_gdn = chunked_kda = functools.partial(chunked)
recurrent_kda = functools.partial(recurrent)


def folded_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    """The scale is folded into the queries (N1, mlx-lm#1798)."""
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(q.float() * scale, k, v, g, beta, scale=1.0, **options)


def padded_kda(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    """Padded to a multiple of 64 with zeros, gates too: the state stays (N4, transformers#46873)."""
    q, k, v, g = (torch.nn.functional.pad(x, (0, 0, 0, 0, 0, -x.shape[1] % 64)) for x in (q, k, v, g))
    tokens = beta.shape[1]
    beta = torch.nn.functional.pad(beta, (0, 0, 0, -tokens % 64))
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    output, state = recurrent(q, k, v, g, beta, scale=scale, **options)
    return output[:, :tokens], state
