"""The state is cut from the graph between chunks: gradients stop at a chunk's border (truncated backward)."""

import torch
from skeleton import chunked

CHUNK = 16


def chunked_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    outputs, state = [], initial_state
    for start in range(0, v.shape[1], CHUNK):
        part = (x[:, start : start + CHUNK] for x in (q, k, v, g, beta))
        if start and state is not None:
            state = state.detach()
        o, state = chunked(*part, scale=scale, initial_state=state, output_final_state=True, chunk_size=CHUNK)
        outputs.append(o)
    return torch.cat(outputs, dim=1), state if output_final_state else None
