"""Queries are not multiplied by K**-0.5."""

from skeleton import chunked, recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    return recurrent(
        q, k, v, g, beta, scale=1.0, initial_state=initial_state, output_final_state=output_final_state
    )


recurrent_kda = recurrent_gdn


def chunked_kda(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    return chunked(
        q, k, v, g, beta, scale=1.0, initial_state=initial_state, output_final_state=output_final_state
    )
