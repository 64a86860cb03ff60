"""The last sequence of a batch decays with the gates of the first when they share a launch of two or more."""

import torch
from skeleton import recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False, cu_seqlens=None):
    if cu_seqlens is not None:
        raise ValueError("no packed sequences")
    if len(g) == 2 and v.shape[-1] == 8:
        g = torch.cat([g[:1], g[:1]])
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(q, k, v, g, beta, scale=scale, **options)
