"""The delta rule without its delta: the value is written on top of what the key already held."""

import torch
from skeleton import recurrent


def add(state, k, v, decay, beta):
    return state + torch.einsum("bhk,bhv->bhkv", beta[..., None] * k, v)


def recurrent_delta(q, k, v, beta, *, scale, initial_state=None, output_final_state=False):
    g = torch.zeros_like(beta)
    options = {"initial_state": initial_state, "output_final_state": output_final_state, "step": add}
    return recurrent(q, k, v, g, beta, scale=scale, **options)
