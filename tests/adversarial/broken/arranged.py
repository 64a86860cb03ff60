"""Right on plain calls; each ``fault`` shows when the same numbers are arranged or declared otherwise."""

import torch
from skeleton import chunked, recurrent


def reordered(q, k, v, g, beta, *, initial_state, **options):
    """The same numbers from sums over the channels in reverse order."""
    state = None if initial_state is None else initial_state.flip(-2)
    g = g.flip(-1) if g.ndim == 4 else g
    o, final = recurrent(q.flip(-1), k.flip(-1), v, g, beta, initial_state=state, **options)
    return o, None if final is None else final.flip(-2)


def some_reordered(chosen, axis, q, k, v, g, beta, *, initial_state, **options):
    """Where ``chosen`` along an axis of sequences (0) or value heads (2), in reverse order."""
    group = v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(group, 2) for x in (q, k))
    plain, other = (
        way(q, k, v, g, beta, initial_state=initial_state, **options) for way in (recurrent, reordered)
    )
    picked = [
        torch.where(chosen.view([-1 if i == a else 1 for i in range(4)]), y, x)
        for x, y, a in zip(plain, other, (axis, min(axis, 1)), strict=True)
    ]
    return picked[0], picked[1]


def beyond_the_end(x):
    """0 times the number after the last one, where there is one."""
    end = x.storage_offset() + x.numel()
    there = x.untyped_storage().nbytes() // x.element_size() > end
    return 0 * torch.as_strided(x, (1,), (1,), end) if there else 0


def call(q, k, v, g, beta, *, fault, scale, initial_state, output_final_state, chunk_size=64):
    """A gated delta rule, or Kimi Delta Attention, with one fault."""
    options = {"scale": scale, "initial_state": initial_state, "output_final_state": output_final_state}
    if g is None:
        g = torch.zeros(v.shape[:3]) if fault != "no gate" else torch.full(v.shape[:3], -0.01)
    sequences, heads = torch.arange(v.shape[0]), torch.arange(v.shape[2])
    if fault == "order of the batch" and len(v) == 2 and v[0].sum() > v[1].sum():
        return some_reordered(sequences >= 0, 0, q, k, v, g, beta, **options)
    if fault == "first head":
        return some_reordered(heads == 0, 2, q, k, v, g, beta, **options)
    if fault == "one sequence" and len(v) == 1:
        return some_reordered(sequences >= 0, 0, q, k, v, g, beta, **options)
    if fault == "one row too many":
        v = v + beyond_the_end(v)
    if fault == "stride 0" and v.stride(0) == 0:
        v = v[:, :1].expand_as(v)
    if fault == "fast path" and g.ndim == 4 and (g == g[..., :1]).all():
        g = g * 1.01
    if fault == "no tokens" and not v.shape[1]:
        options["initial_state"] = None
    if fault == "small chunks":
        mask = (lambda x: x.tril(-1)) if chunk_size < 16 else torch.tril
        return chunked(q, k, v, g.unsqueeze(-1), beta, chunk_size=chunk_size, mask=mask, **options)
    return recurrent(q, k, v, g, beta, **options)
