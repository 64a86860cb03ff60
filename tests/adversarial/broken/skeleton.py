"""A correct gated delta rule with one hole per fault; the broken kernels beside it fill one hole wrongly.

Plain torch, written apart from ``kernels``: explicit loops, an explicit inverse, a padded last chunk.
"""

import torch


def working(q, k, v, g, beta, scale, initial_state, heads=None):
    """float32, one query/key head per value head, g ``[B, T, HV, K or 1]``, state ``[B, HV, K, V]``."""
    group = v.shape[2] // q.shape[2]
    if heads is None:
        heads = torch.arange(v.shape[2]) // group
    q, k = q[:, :, heads].float(), k[:, :, heads].float()
    g = g.unsqueeze(-1) if g.ndim == 3 else g
    state = torch.zeros(v.shape[0], v.shape[2], q.shape[-1], v.shape[-1])
    if initial_state is not None:
        state = initial_state.float().clone()
    return q * scale, k, v.float(), g.float(), beta.float(), state


def finish(outputs, state, v, output_final_state):
    out = torch.stack(outputs, dim=1) if outputs else torch.empty_like(v)
    return out.to(v.dtype), state if output_final_state else None


def token(state, k, v, decay, beta):
    """The definition: decay, erase, write."""
    state = decay[..., None] * state
    error = v - torch.einsum("bhkv,bhk->bhv", state, k)
    return state + torch.einsum("bhk,bhv->bhkv", beta[..., None] * k, error)


def recurrent(
    q,
    k,
    v,
    g,
    beta,
    *,
    scale,
    initial_state=None,
    output_final_state=False,
    step=token,
    after=None,
    heads=None,
):
    """Token by token; ``after`` acts on the state after every token."""
    qs, ks, vs, gs, betas, state = working(q, k, v, g, beta, scale, initial_state, heads)
    outputs = []
    for t in range(v.shape[1]):
        state = step(state, ks[:, t], vs[:, t], gs[:, t].exp(), betas[:, t])
        if after is not None:
            state = after(state)
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, qs[:, t]))
    return finish(outputs, state, v, output_final_state)


def pairwise(x, y, running):
    """``sum_k x_ik y_jk e^(G_ik - G_jk)``, the difference formed first and masked before exp."""
    rows = running.shape[2]
    later = torch.ones(rows, rows, dtype=torch.bool).triu(1)[:, :, None]
    exponent = running[:, :, :, None] - running[:, :, None]
    return torch.einsum(
        "bhik,bhjk,bhijk->bhij",
        x,
        y,
        exponent.masked_fill(later, -torch.inf).exp().expand(*exponent.shape[:4], x.shape[-1]),
    )


def substitution(strictly_lower):
    """``(I + L)^-1`` row by row."""
    eye = torch.eye(strictly_lower.shape[-1]).expand_as(strictly_lower)
    inverse = eye[..., :1, :]
    for i in range(1, strictly_lower.shape[-1]):
        row = eye[..., i, None, :] - strictly_lower[..., i, None, :i] @ inverse
        inverse = torch.cat([inverse, row], dim=-2)
    return inverse


def running_sums(g):
    """Of the gates ``[B, T, HV, D]`` of one chunk."""
    return g.cumsum(1)


def decayed(running, rows):
    """Queries or keys as they meet the state at the start of the chunk."""
    return running.exp() * rows


def carried(end, state):
    """What is left of the state at the end of the chunk."""
    return end.exp()[..., None] * state


def last_row(running, valid):
    return running[:, :, valid - 1]


def padded(rows, chunk_size):
    """``[B, T, HV, D]`` to ``[B, HV, chunk_size, D]``, zeros after T."""
    rows = rows.transpose(1, 2)
    return torch.nn.functional.pad(rows, (0, 0, 0, chunk_size - rows.shape[2]))


def repeated(rows, chunk_size):
    """As ``padded``, with the last row after T: no decay there."""
    rows = rows.transpose(1, 2)
    return torch.cat([rows, rows[:, :, -1:].expand(-1, -1, chunk_size - rows.shape[2], -1)], dim=2)


def chunked(
    q,
    k,
    v,
    g,
    beta,
    *,
    scale,
    initial_state=None,
    output_final_state=False,
    chunk_size=64,
    scores=pairwise,
    inverse=substitution,
    last=last_row,
    mask=torch.tril,
    pad_gate=repeated,
    sums=running_sums,
    erasing=decayed,
    carry=carried,
):
    """Chunk by chunk, the last chunk padded with zeros, its running gate by ``pad_gate``."""
    q, k, vs, g, beta, state = working(q, k, v, g, beta, scale, initial_state)
    outputs = []
    for start in range(0, v.shape[1], chunk_size):
        valid = min(chunk_size, v.shape[1] - start)
        rows = slice(start, start + valid)
        running = pad_gate(sums(g[:, rows]), chunk_size)
        query, key, value = (padded(x[:, rows], chunk_size) for x in (q, k, vs))
        strength = padded(beta[:, rows, :, None], chunk_size)
        lower = (strength * scores(key, key, running)).tril(-1)
        right = strength * (value - erasing(running, key) @ state)
        writes = inverse(lower) @ right
        out = decayed(running, query) @ state + mask(scores(query, key, running)) @ writes
        outputs.extend(out.transpose(1, 2)[:, :valid].unbind(1))
        end = last(running, valid)
        to_end = (end[:, :, None] - running)[:, :, :valid].exp() * key[:, :, :valid]
        state = carry(end, state) + to_end.mT @ writes[:, :, :valid]
    return finish(outputs, state, v, output_final_state)
