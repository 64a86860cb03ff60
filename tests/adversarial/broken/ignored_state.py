"""Every sequence starts from the zero state, whatever was handed over."""

from skeleton import chunked, recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    return recurrent(q, k, v, g, beta, scale=scale, output_final_state=output_final_state)


def chunked_kda(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    return chunked(q, k, v, g, beta, scale=scale, output_final_state=output_final_state)
