"""Token-by-token kernels of Mamba-2, DPLR and GDN-2, each with one fault, or none."""

import torch


def _run(q, k, v, step, *, scale, initial_state, tiled=False):
    """All tokens by ``step(state, t, key)``, in float32 or float64; outputs in v's dtype."""
    batch, tokens, heads, values = v.shape
    dtype = torch.float64 if v.dtype == torch.float64 else torch.float32
    group = heads // q.shape[2]
    q, k = (x.repeat(1, 1, group, 1) if tiled else x.repeat_interleave(group, 2) for x in (q, k))
    q, k = q.to(dtype), k.to(dtype)
    state = torch.zeros(batch, heads, q.shape[3], values, dtype=dtype)
    state = state if initial_state is None else initial_state.to(dtype)
    outputs = []
    for t in range(tokens):
        state = step(state, t, k[:, t])
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, scale * q[:, t]))
    return torch.stack(outputs, 1).to(v.dtype), state


def _outer(x, y):
    return x[..., None] * y[..., None, :]


def _read(state, x):
    return torch.einsum("bhkv,bhk->bhv", state, x)


def mamba2(q, k, v, g, *, scale=1.0, initial_state=None, output_final_state=True, fault=""):
    dtype = torch.float64 if v.dtype == torch.float64 else torch.float32
    decay, value = g.to(dtype).exp(), v.to(dtype)
    if fault == "one decay for all heads":
        decay = decay[:, :, :1].expand_as(decay)

    def step(state, t, key):
        alpha = decay[:, t, :, None, None]
        if fault == "decay after the write":
            return alpha * (state + _outer(key, value[:, t]))
        if fault == "erases":
            return alpha * state + _outer(key, value[:, t] - _read(alpha * state, key))
        state = alpha * state + _outer(key, value[:, t])
        return state.to(torch.bfloat16).to(dtype) if fault == "narrow state" else state

    return _run(q, k, v, step, scale=scale, initial_state=initial_state, tiled=fault == "tiled heads")


def dplr(q, k, v, a, b, g, *, scale=None, initial_state=None, output_final_state=True, fault=""):
    dtype = torch.float64 if v.dtype == torch.float64 else torch.float32
    a, b, decay, value = a.to(dtype), b.to(dtype), g.to(dtype).exp(), v.to(dtype)
    if fault == "a without a gradient":
        a = a.detach() + 0 * a
    if fault == "a and b swapped":
        a, b = b, a
    b = -b if fault == "opposite sign" else b

    def step(state, t, key):
        decayed = decay[:, t, ..., None] * state
        held = _read(decayed if fault == "a reads the decayed state" else state, a[:, t])
        along = key if fault == "adds along the key" else b[:, t]
        return decayed + _outer(along, held) + _outer(key, value[:, t])

    return _run(q, k, v, step, scale=scale, initial_state=initial_state)


def gdn2(q, k, v, g, b, w, *, scale=None, initial_state=None, output_final_state=True, fault=""):
    dtype = torch.float64 if v.dtype == torch.float64 else torch.float32
    b, decay, value = b.to(dtype), g.to(dtype).exp(), v.to(dtype)
    value = value if fault == "no write gate" else w.to(dtype) * value
    if fault == "write gate without a gradient":
        value = w.to(dtype).detach() * v.to(dtype) + 0 * w

    def step(state, t, key):
        decayed = decay[:, t, ..., None] * state
        gated = b[:, t] * key
        if fault == "no erase gate":
            gated = key
        if fault == "erase gate on the other side":
            return decayed - _outer(gated, _read(decayed, key)) + _outer(key, value[:, t])
        held = _read(state if fault == "reads before the decay" else decayed, gated)
        return decayed + _outer(key, value[:, t] - held)

    return _run(q, k, v, step, scale=scale, initial_state=initial_state)


def wrong_mamba2(**arguments):
    return mamba2(fault="decay after the write", **arguments)


def wrong_dplr(**arguments):
    return dplr(fault="a and b swapped", **arguments)


def wrong_gdn2(**arguments):
    return gdn2(fault="erase gate on the other side", **arguments)
