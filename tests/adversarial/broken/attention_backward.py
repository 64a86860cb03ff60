"""Correct softmax attention with a backward pass of its own, and one hole in it for the broken kernels."""

import torch


def causal_logits(q, k, scale):
    """``[B, H, T, T]``; a later key has -inf."""
    logits = scale * torch.einsum("bthk,bjhk->bhtj", q, k)
    return logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, scale, logits):
        own = causal_logits(q, k, scale)
        lse = own.logsumexp(-1, keepdim=True)
        out = torch.einsum("bhtj,bjhv->bthv", (own - lse).exp(), v)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.scale, ctx.logits = scale, logits
        return out

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, out, lse = ctx.saved_tensors
        logits = ctx.logits(q, k, ctx.scale)
        pad = (0, 0, 0, 0, 0, logits.shape[-1] - k.shape[1])
        key, value = (torch.nn.functional.pad(x, pad) for x in (k, v))
        weights = (logits - lse).exp()
        mean = (gradient * out).sum(-1).transpose(1, 2)[..., None]
        slope = weights * (torch.einsum("bthv,bjhv->bhtj", gradient, value) - mean) * ctx.scale
        dq = torch.einsum("bhtj,bjhk->bthk", slope, key)
        dk = torch.einsum("bhtj,bthk->bjhk", slope, q)[:, : k.shape[1]]
        dv = torch.einsum("bhtj,bthv->bjhv", weights, gradient)[:, : k.shape[1]]
        return dq, dk, dv, None, None


def attention(q, k, v, *, scale, logits=causal_logits):
    """float32; ``logits`` are those of the backward pass, ``[B, H, T, T]`` or wider for padded keys."""
    group = q.shape[2] // k.shape[2]
    key, value = (x.float().repeat_interleave(group, 2) for x in (k, v))
    return _Attention.apply(q.float(), key, value, scale, logits).to(v.dtype), None
