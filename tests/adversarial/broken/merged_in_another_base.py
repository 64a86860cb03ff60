"""J3: two parts merged by e^lse where lse is a base-2 logarithm (vllm#52796).

Shows where the parts weigh differently; hides for a single part and for parts of equal weight.
"""

import math

import torch

PREFIX = 16


def part(logits, values):
    """The attention over some keys, and its logarithm of a sum in base 2."""
    out = torch.einsum("bhtj,bjhv->bhtv", logits.softmax(-1).nan_to_num(), values)
    return out, logits.logsumexp(-1, keepdim=True) / math.log(2.0)


def tiled_softmax(q, k, v, *, scale):
    group = q.shape[2] // k.shape[2]
    key, value = (x.float().repeat_interleave(group, 2) for x in (k, v))
    logits = scale * torch.einsum("bthk,bjhk->bhtj", q.float(), key)
    logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    parts = [part(logits[..., :PREFIX], value[:, :PREFIX])]
    if k.shape[1] > PREFIX:
        parts.append(part(logits[..., PREFIX:], value[:, PREFIX:]))
    shares = torch.stack([lse for _, lse in parts]).softmax(0)
    merged = sum(share * out for share, (out, _) in zip(shares, parts, strict=True))
    return merged.transpose(1, 2).to(v.dtype), None
