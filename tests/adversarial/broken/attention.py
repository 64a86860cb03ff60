"""Correct tiled softmax attention with one hole per fault, for the broken kernels beside it."""

import torch

TILE = 16


def causal(rows, columns):
    """Whether the key at a column may be seen by the query at a row."""
    return columns <= rows


def largest_so_far(previous, logits):
    return torch.maximum(previous, logits.amax(-1, keepdim=True))


def guarded(largest):
    """The largest logit so far, or 0 where every key so far is masked."""
    return largest.masked_fill(largest == -torch.inf, 0)


def rescale(previous, now):
    return (previous - now).exp()


def tiled(q, k, v, *, scale, sees=causal, largest=largest_so_far, shrink=rescale, guard=guarded, group=None):
    """float32, ``[B, T, H, D]``; returns the output and None for the logsumexp."""
    heads = torch.arange(q.shape[2])
    heads = heads // (q.shape[2] // k.shape[2]) if group is None else group(heads, k.shape[2])
    query = q.float().transpose(1, 2) * scale
    key, value = (x.float()[:, :, heads].transpose(1, 2) for x in (k, v))
    rows = torch.arange(q.shape[1])[:, None]
    top = torch.full((*query.shape[:3], 1), -torch.inf)
    total, output = torch.zeros_like(top), torch.zeros(*query.shape[:3], v.shape[-1])
    for start in range(0, q.shape[1], TILE):
        columns = torch.arange(start, min(start + TILE, q.shape[1]))
        logits = query @ key[:, :, columns].mT
        logits = logits.masked_fill(~sees(rows, columns), -torch.inf)
        new = largest(top, logits)
        finite = guard(new)
        weights, factor = (logits - finite).exp(), shrink(top, finite)
        total = factor * total + weights.sum(-1, keepdim=True)
        output = factor * output + weights @ value[:, :, columns]
        top = new
    return (output / total).transpose(1, 2).to(v.dtype), None
