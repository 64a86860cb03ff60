"""E1: what the state predicts is rounded to bfloat16 before it is subtracted (attention-gym#465).

Shows where value and prediction are close; hides where bfloat16 holds the prediction, as at a first token.
"""

import functools

import torch
from skeleton import recurrent


def step(state, k, v, decay, beta):
    state = decay[..., None] * state
    error = v - torch.einsum("bhkv,bhk->bhv", state, k).bfloat16().float()
    return state + torch.einsum("bhk,bhv->bhkv", beta[..., None] * k, error)


recurrent_gdn = recurrent_kda = functools.partial(recurrent, step=step)
