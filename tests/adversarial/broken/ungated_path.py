"""F4: erase and write strength sit in the branch for gated calls: without gates there is neither (fla#623).

Shows for the delta rule; hides as soon as there are gates, even gates of 0, and in one token written with
full strength into an empty state.
"""

import torch
from skeleton import recurrent, token


def fused(q, k, v, g, beta, **options):
    if g is not None:
        return recurrent(q, k, v, g, beta, step=token, **options)
    return recurrent(q, k, v, torch.zeros_like(beta), beta, step=add, **options)


def add(state, k, v, decay, beta):
    return state + torch.einsum("bhk,bhv->bhkv", k, v)


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return fused(q, k, v, g, beta, scale=scale, **options)


def recurrent_delta(q, k, v, beta, *, scale, initial_state=None, output_final_state=False):
    return recurrent_gdn(
        q, k, v, None, beta, scale=scale, initial_state=initial_state, output_final_state=output_final_state
    )
