"""The KDA recurrence in other conventions, and some that autograd cannot pass."""

import math

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
