"""The KDA recurrence in other conventions, some that autograd cannot pass, and a factored delta rule."""

import math

import torch

from kernels.kda.recurrent import recurrent_kda


def head_first(q, k, v, g, beta, *, initial_state, **options):
    tokens = (x.transpose(1, 2) for x in (q, k, v, g, beta))
    o, state = recurrent_kda(*tokens, initial_state=initial_state.mT, **options)
    return o.transpose(1, 2), state.mT


def base_two(q, k, v, g, beta, **options):
    return recurrent_kda(q, k, v, g * math.log(2), beta, **options)


def linear_gate(q, k, v, g, beta, **options):
    return recurrent_kda(q, k, v, g.log(), beta, **options)


def detached(q, k, v, g, beta, **options):
    o, state = recurrent_kda(q, k, v, g, beta, **options)
    return o.detach(), state


def deaf(q, k, v, g, beta, **options):
    return recurrent_kda(q, k, v, g, beta.detach(), **options)


def in_place(q, k, v, g, beta, **options):
    q.mul_(1)
    return recurrent_kda(q, k, v, g, beta, **options)


def factored_delta(q, k, v, beta, *, scale, initial_state, chunk_size):
    """One head, with a chunk's writes as U - W S from stored U and W."""
    q, k, v, beta = (x[0, :, 0] for x in (q, k, v, beta[..., None]))
    state, outputs = initial_state[0, 0], []
    chunks = zip(*(x.split(chunk_size) for x in (q * scale, k, v, beta)), strict=True)
    for queries, keys, values, strengths in chunks:
        system = torch.eye(len(keys), dtype=k.dtype) + (strengths * (keys @ keys.mT)).tril(-1)
        inverse = torch.linalg.solve_triangular(system, torch.eye(len(keys), dtype=k.dtype), upper=False)
        writes = inverse @ (strengths * values) - (inverse @ (strengths * keys)) @ state
        outputs.append(queries @ state + (queries @ keys.mT).tril() @ writes)
        state = state + keys.mT @ writes
    return torch.cat(outputs)[None, :, None], state[None, None]
