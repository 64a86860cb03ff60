"""Kernels in other conventions, behind activations, at their limits, and some that autograd cannot pass."""

import itertools
import math

import torch
from torch.nn.functional import sigmoid, softplus

from kernels.gdn.recurrent import recurrent_gdn
from kernels.kda.recurrent import recurrent_kda
from kernels.mamba2.chunked import chunked_mamba2
from kernels.softmax.tiled import tiled_softmax


def call(*arguments, function, **options):
    """One of the others by its name, so that one worker serves all."""
    return globals()[function](*arguments, **options)


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


def fused(
    q,
    k,
    v,
    g,
    beta,
    *,
    scale,
    initial_state,
    gate,
    strength,
    norm,
    A_log=None,
    dt_bias=None,
    tiled=False,
    fault="",
):
    """Gates, strengths and unit keys made inside, in float32, as in flash-linear-attention."""
    dtype, heads = v.dtype, v.shape[2]
    if tiled:
        q, k = (x.repeat(1, 1, heads // x.shape[2], 1) for x in (q, k))
    if norm != "none":
        q, k = (x.float() * torch.rsqrt(x.float().square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
        k = k.detach() + (k - k.detach()) * 1.01 if fault == "keys" else k
    if norm == "unit-rounded":
        q, k = q.to(dtype), k.to(dtype)
    if gate != "value":
        rates, bias = (0.0 if x is None else x.reshape(heads, -1) for x in (A_log, dt_bias))
        rates = math.exp(rates) if A_log is None else rates.exp()
        z = g.float() + (bias.detach() if fault == "bias" else bias)
        rates = rates.detach() if fault == "rates" else rates
        g = -5.0 * sigmoid(rates * z) if gate == "sigmoid" else -rates * softplus(z)
    if strength != "value":
        beta = (2.0 if strength == "2*sigmoid" else 1.0) * sigmoid(beta.float())
    q, k, v, g, beta = (x.float() for x in (q, k, v, g, beta))
    state = initial_state.float()
    o, final = recurrent_kda(q, k, v, g, beta, scale=scale, initial_state=state, output_final_state=True)
    return o.to(dtype), final


def steps(C, B, x, dt, A, *, initial_states, fault=""):
    """Mamba-2 with steps: gates dt A and values dt x."""
    values = x * (dt.detach() if fault == "values" else dt)[..., None]
    return chunked_mamba2(
        C, B, values, dt * A, scale=1.0, initial_state=initial_states, output_final_state=True
    )


def sunk(q, k, v, *, scale, sink, fault=""):
    sink = sink * 1.0 if fault != "half" else 0.5 * sink + 0.5 * sink.detach()
    return tiled_softmax(q, k, v, scale=scale, sink=sink)[0]


def unfloored(q, k, v, g, beta, **options):
    """Gates as differences of running sums: NaN behind a gate of -inf."""
    sums = g.cumsum(1)
    gates = sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1]))
    return recurrent_gdn(q, k, v, torch.where(gates > 0, 0.0, gates), beta, **options)


def default_scale(q, k, v, g, beta, *, scale, **options):
    return recurrent_gdn(q, k, v, g, beta, scale=scale or q.shape[-1] ** -0.5, **options)


def packed(q, k, v, g, beta, *, initial_state, fault="", cu_seqlens=None, **options):
    """Sequences one after another; a fault adds 0 times the state before, or refuses NaN."""
    if fault == "refuses" and v.isnan().any():
        raise ValueError("v holds NaN")
    offsets = [0, q.shape[1]] if cu_seqlens is None else cu_seqlens.tolist()
    outputs, states = [], []
    for n, (start, end) in enumerate(itertools.pairwise(offsets)):
        first = initial_state[n : n + 1]
        first = first + 0 * states[-1] if fault == "leaks" and states else first
        tokens = (x[:, start:end] for x in (q, k, v, g, beta))
        o, state = recurrent_gdn(*tokens, initial_state=first, **options)
        outputs.append(o)
        states.append(state)
    return torch.cat(outputs, 1), torch.cat(states)
