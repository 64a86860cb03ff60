"""Mamba-2's state-space duality in plain torch, chunk by chunk: a target for `attnproof certify`.

    attnproof certify examples/minimal_ssd.py:ssd_minimal_discrete --mechanism mamba2 --convention mamba

The algorithm is listing 1 of Dao and Gu, Transformers are SSMs (arXiv 2405.21060), with its argument names.
"""

import torch


def segment_sums(a):
    """[..., T] to [..., T, T]: the sum of a[j+1..i] at (i, j), minus infinity above the diagonal."""
    length = a.shape[-1]
    ones = torch.ones(length, length, dtype=torch.bool, device=a.device)
    steps = a[..., None].expand(*a.shape, length).masked_fill(~ones.tril(-1), 0)
    return steps.cumsum(-2).masked_fill(~ones.tril(), -torch.inf)


def ssd_minimal_discrete(X, A, B, C, block_len, initial_states=None):
    """The outputs and the final state of h <- e^A h + X B^T, Y = h C, per head.

    Shapes: X [b, T, h, p]; A [b, T, h], log decays; B, C [b, T, h, n]; T a multiple of ``block_len``; states
    [b, h, p, n]. Returns Y like X and the final state.
    """
    b, length, h, p = X.shape
    blocks = length // block_len
    X, B, C = (x.reshape(b, blocks, block_len, h, x.shape[-1]) for x in (X, B, C))
    A = A.reshape(b, blocks, block_len, h).permute(0, 3, 1, 2)
    within = A.cumsum(-1)
    # Inside a block: attention by scores C B^T that have decayed on the way.
    diagonal = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C, B, segment_sums(A).exp(), X)
    # What each block adds to the state, and the states that the blocks start from.
    to_end = (within[..., -1:] - within).exp()
    states = torch.einsum("bclhn,bhcl,bclhp->bchpn", B, to_end, X)
    if initial_states is None:
        initial_states = torch.zeros_like(states[:, 0])
    states = torch.cat([initial_states[:, None].to(states.dtype), states], dim=1)
    between = torch.nn.functional.pad(within[..., -1], (1, 0))
    states = torch.einsum("bhzc,bchpn->bzhpn", segment_sums(between).exp(), states)
    # What the state at the start of a block still says inside it.
    carried = torch.einsum("bclhn,bchpn,bhcl->bclhp", C, states[:, :-1], within.exp())
    return (diagonal + carried).reshape(b, length, h, p), states[:, -1]
