"""Attention with a window, a sink or a linear normaliser, each with one fault, or none."""

import torch


def attention(q, k, v, *, scale, kind, fault="", sink=None, window=16):
    """``kind``: softmax or linear. Queries of softmax and values of linear attention have the more heads."""
    heads = max(q.shape[2], v.shape[2])
    dtype = torch.float64 if v.dtype == torch.float64 else torch.float32
    out, place = v.dtype, torch.arange(v.shape[1])
    q, k, v = (x.to(dtype).repeat_interleave(heads // x.shape[2], 2) for x in (q, k, v))
    s = torch.einsum("bthk,bjhk->bhtj", scale * q, k)
    distance = place[:, None] - place
    width = window + {"wider": 1, "narrower": -1, "no window": 10**6}.get(fault, 0)
    seen = (distance >= 0) & (distance < width)
    if kind == "linear":
        p = s * (distance >= (0 if fault != "narrow mask" else 1))
        total = p.sum(-1, keepdim=True) + (1e-5 if fault == "epsilon" else 0)
        p = p if fault == "no normaliser" else p / total
    else:
        s = s.masked_fill(~seen, -torch.inf)
        if sink is not None and fault != "no sink":
            s = torch.cat([s, sink.to(dtype)[None, :, None, None].expand(*s.shape[:3], 1)], -1)
        p = s.softmax(-1)[..., : k.shape[1]]
        p = p / p.sum(-1, keepdim=True) if fault == "normalised anew" else p
    return torch.einsum("bhtj,bjhv->bthv", p, v).to(out), None


def softmax_window(q, k, v, *, scale, fault=""):
    return attention(q, k, v, scale=scale, kind="softmax", fault=fault)


def softmax_sink(q, k, v, *, scale, sink, fault=""):
    return attention(q, k, v, scale=scale, kind="softmax", sink=sink, fault=fault, window=10**6)


def linear_normalised(q, k, v, *, scale, fault=""):
    return attention(q, k, v, scale=scale, kind="linear", fault=fault)


def wrong_softmax_window(q, k, v, *, scale, **options):
    return softmax_window(q, k, v, scale=scale, fault="wider")


def wrong_softmax_sink(q, k, v, *, scale, sink, **options):
    return softmax_sink(q, k, v, scale=scale, sink=sink, fault="no sink")


def wrong_linear_normalised(q, k, v, *, scale, **options):
    return linear_normalised(q, k, v, scale=scale, fault="no normaliser")
