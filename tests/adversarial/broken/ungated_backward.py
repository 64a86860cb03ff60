"""No gradient for the gate."""

from skeleton import recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(q, k, v, g.detach() + 0 * g, beta, scale=scale, **options)
