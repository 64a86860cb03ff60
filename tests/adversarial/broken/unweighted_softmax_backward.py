"""The backward pass of softmax without the mean that the normaliser subtracts."""

import torch
from attention import tiled


def tiled_softmax(q, k, v, *, scale):
    o, _ = tiled(q, k, v, scale=scale)
    if not torch.is_grad_enabled():
        return o, None
    heads = torch.arange(q.shape[2]) // (q.shape[2] // k.shape[2])
    logits = scale * torch.einsum("bthk,bjhk->bhtj", q.float(), k.float()[:, :, heads])
    logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    powers = (logits - logits.detach().amax(-1, keepdim=True)).exp()
    weights = powers / powers.sum(-1, keepdim=True).detach()
    return torch.einsum("bhtj,bjhv->bthv", weights, v.float()[:, :, heads]).to(v.dtype), None
