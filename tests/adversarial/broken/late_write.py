"""Linear attention that reads the state before a token is written to it."""

import torch
from skeleton import finish, working


def recurrent_linear(q, k, v, *, scale, initial_state=None, output_final_state=False):
    none = torch.zeros(v.shape[:3])
    q, k, values, _, _, state = working(q, k, v, none, none, scale, initial_state)
    outputs = []
    for t in range(v.shape[1]):
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], values[:, t])
    return finish(outputs, state, v, output_final_state)
