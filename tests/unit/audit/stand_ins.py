"""Stand-ins for kernels that cannot be installed here: plain torch, called as their presets say.

``call`` takes the name of one beside its arguments, so that one worker serves all. A name may be followed by
a violation: one way in which the stand-in then departs from its convention.
"""

import itertools

import torch
from torch.nn.functional import sigmoid, softplus


def call(*arguments, function, **keywords):
    name, _, violation = function.partition("-")
    return globals()[name](*arguments, violation=violation, **keywords)


def delta(q, k, v, decay, beta, state, offsets, erases=True):
    """Sequences packed along the first axis, [T, H, K]; one query and key head per value head."""
    outputs, finals = torch.empty(v.shape, dtype=torch.float32), torch.empty(state.shape)
    for n, (start, end) in enumerate(itertools.pairwise(offsets)):
        held = state[n].float().clone()
        for t in range(start, end):
            held = decay[t].reshape(*decay.shape[1:2], -1, 1) * held
            known = torch.einsum("hkv,hk->hv", held, k[t]) if erases else 0.0
            held = held + torch.einsum("hk,hv->hkv", k[t], beta[t, :, None] * (v[t] - known))
            outputs[t] = torch.einsum("hkv,hk->hv", held, q[t])
        finals[n] = held
    return outputs, finals


def unit(x, eps=1e-6):
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + eps)


def flat(x):
    """[B, T, ...] as packed sequences."""
    return x.reshape(-1, *x.shape[2:]).float()


def ends(q, cu_seqlens):
    if cu_seqlens is not None:
        return cu_seqlens.tolist()
    return [b * q.shape[1] for b in range(q.shape[0] + 1)]


def repeated(x, heads):
    return x.repeat_interleave(heads // x.shape[-2], -2)


def fwd(
    q,
    k,
    v,
    g,
    beta,
    scale,
    out,
    A_log,
    dt_bias,
    lower_bound,
    initial_state=None,
    final_state=None,
    cu_seqlens=None,
    *,
    violation,
):
    """FlashKDA: logits, raw gates, V-major states, results in buffers."""
    rates = A_log.exp()[:, None]
    gates = lower_bound * sigmoid(rates * (flat(g) + dt_bias))
    logits = flat(beta)
    strength = logits if violation == "logits" else sigmoid(logits)
    offsets = ends(q, cu_seqlens)
    turned = (lambda state: state) if violation == "layout" else torch.Tensor.mT.__get__
    start = torch.zeros(len(offsets) - 1, v.shape[2], 128, 128)
    start = start if initial_state is None else turned(initial_state)
    queries, keys = (flat(x) if violation == "norm" else unit(flat(x)) for x in (q, k))
    o, final = delta(queries * scale, keys, flat(v), gates.exp(), strength, start, offsets)
    out.copy_(o.reshape(out.shape))
    if final_state is not None and violation != "unwritten":
        final_state.copy_(turned(final))


def chunk_kda(q, k, v, g, beta, *, scale, initial_state, output_final_state, cu_seqlens=None, violation):
    """vLLM: the output in the tensor of v."""
    offsets = ends(q, cu_seqlens)
    heads = v.shape[2]
    queries, keys = (flat(repeated(x, heads)) for x in (q, k))
    decay = flat(g).exp2() if violation == "log2" else flat(g).exp()
    start = initial_state if violation == "layout" else initial_state.mT
    o, final = delta(queries * scale, keys, flat(v), decay, flat(beta), start, offsets)
    v.copy_(o.reshape(v.shape))
    if violation == "keys":
        k.zero_()
    return v, final if violation == "layout" else final.mT


def chunk_kda_with_fused_gate(q, k, v, raw_g, beta, A_log, g_bias, *, violation, **rest):
    """vLLM: the same with raw gates."""
    raw = raw_g.float() + (violation != "bias") * g_bias.reshape(v.shape[2], -1)
    gates = raw_g if violation == "raw" else -A_log.exp()[:, None] * softplus(raw)
    return chunk_kda(q, k, v, gates, beta, violation="", **rest)


def fused_recurrent_kda(
    q, k, v, g, beta, *, scale, initial_state, use_qk_l2norm_in_kernel, cu_seqlens=None, violation
):
    """vLLM: the final state in place of the initial one."""
    normed = use_qk_l2norm_in_kernel and violation != "norm"
    queries, keys = (unit(x.float()) if normed else x for x in (q, k))
    o, final = chunk_kda(
        queries,
        keys,
        v.clone(),
        g,
        beta,
        scale=scale,
        initial_state=initial_state,
        output_final_state=True,
        cu_seqlens=cu_seqlens,
        violation="",
    )
    if violation != "unwritten":
        initial_state.copy_(final)
    return o, initial_state


def pooled(
    q,
    k,
    v,
    g,
    beta,
    *,
    scale,
    initial_state,
    initial_state_indices,
    use_qk_l2norm_in_kernel,
    A_log,
    dt_bias,
    cu_seqlens=None,
    violation,
):
    """sglang's chunk_kda: the output alone, states in slots of a pool."""
    slots = initial_state_indices.long()
    slots = torch.arange(len(slots)) if violation == "slots" else slots
    gates = -A_log.exp()[:, None] * softplus(g.float() + dt_bias.reshape(v.shape[2], -1))
    o, final = chunk_kda(
        q,
        k,
        v,
        gates,
        beta,
        scale=scale,
        initial_state=initial_state[slots],
        output_final_state=True,
        cu_seqlens=cu_seqlens,
        violation="",
    )
    if violation == "stale":
        o = torch.zeros_like(o)
    initial_state[slots] = final
    if violation == "neighbour":
        initial_state[slots + 1] = final
    return o


def kimi_delta_attention(
    q, k, v, g, beta, cu_seqlens, *, scale, initial_state, gate_domain, violation, **switches
):
    """cuDNN: packed tokens alone, V-major states."""
    assert not any(value for name, value in switches.items() if name != "output_final_state")
    decay = g.float() if (gate_domain == "linear") != (violation == "domain") else g.float().exp()
    queries, keys = (repeated(x, v.shape[1]).float() for x in (q, k))
    start = torch.zeros(len(cu_seqlens) - 1, v.shape[1], q.shape[-1], v.shape[-1])
    start = start if initial_state is None else initial_state.mT
    o, final = delta(queries * scale, keys, v.float(), decay, beta.float(), start, cu_seqlens.tolist())
    return o.to(v.dtype), final.mT


def mamba_chunk_scan_combined(
    x, dt, A, B, C, *, chunk_size, initial_states, return_final_states, cu_seqlens=None, violation
):
    """Mamba-2: groups of B and C, values times dt, V-major states."""
    offsets, heads = ends(x, cu_seqlens), x.shape[2]
    shared = (
        (lambda y: y.repeat(1, 1, heads // y.shape[2], 1)) if violation == "tiled" else repeated_by(heads)
    )
    steps = flat(dt)
    values = flat(x) if violation == "step" else flat(x) * steps[..., None]
    start = torch.zeros(len(offsets) - 1, heads, B.shape[-1], x.shape[-1])
    start = start if initial_states is None else initial_states.mT
    ones = torch.ones_like(steps)
    o, final = delta(
        flat(shared(C)), flat(shared(B)), values, (A * steps).exp(), ones, start, offsets, erases=False
    )
    return o.reshape(x.shape).to(x.dtype), final.mT


def repeated_by(heads):
    return lambda y: repeated(y, heads)


def ssd_minimal_discrete(X, A, B, C, *, block_len, violation):
    """Mamba-2: values that come multiplied by dt, no groups, lengths in blocks."""
    assert X.shape[1] % block_len == 0
    start = torch.zeros(X.shape[0], X.shape[2], B.shape[-1], X.shape[-1])
    decay = flat(A).exp2() if violation == "log2" else flat(A).exp()
    ones = torch.ones_like(flat(A))
    o, final = delta(flat(C), flat(B), flat(X), decay, ones, start, ends(X, None), erases=False)
    return o.reshape(X.shape), final.mT
