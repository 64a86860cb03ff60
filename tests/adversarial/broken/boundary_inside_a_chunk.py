"""I1: an initial state decays from the start of the chunk, not of the sequence packed into it (vllm#23279).

Shows for packed sequences with states whose border lies inside a chunk; hides without a state, for borders
between chunks and for a single sequence.
"""

import itertools

import torch
from skeleton import chunked

CHUNK = 64


def chunked_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False, cu_seqlens=None):
    options = {"scale": scale, "output_final_state": output_final_state, "chunk_size": CHUNK}
    if cu_seqlens is None:
        return chunked(q, k, v, g, beta, initial_state=initial_state, **options)
    outputs, states = [], []
    bounds = cu_seqlens.tolist()
    for i, (start, end) in enumerate(itertools.pairwise(bounds)):
        before = g[:, start // CHUNK * CHUNK : start].sum(1)
        state = None if initial_state is None else initial_state[i : i + 1] * before.exp()[..., None, None]
        part = (x[:, start:end] for x in (q, k, v, g, beta))
        o, state = chunked(*part, initial_state=state, **options)
        outputs.append(o)
        states.append(state)
    return torch.cat(outputs, dim=1), torch.cat(states) if output_final_state else None
