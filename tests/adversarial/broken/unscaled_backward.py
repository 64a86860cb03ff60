"""The query is scaled forward and not backward."""

from skeleton import recurrent


def recurrent_delta(q, k, v, beta, *, scale, initial_state=None, output_final_state=False):
    unscaled = q.float()
    query = (scale * unscaled).detach() + unscaled - unscaled.detach()
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(query, k, v, beta * 0, beta, scale=1.0, **options)
