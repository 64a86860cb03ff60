"""The erase reads the state before its decay (the order asked about in fla#885)."""

import functools

import torch
from skeleton import recurrent


def step(state, k, v, decay, beta):
    error = v - torch.einsum("bhkv,bhk->bhv", state, k)
    return decay[..., None] * state + torch.einsum("bhk,bhv->bhkv", beta[..., None] * k, error)


recurrent_gdn = recurrent_kda = functools.partial(recurrent, step=step)
