"""A6: the logarithm of a decay handed over as 0 is -inf, and differences of its sums are NaN (lattice#235).

Takes decays, not their logarithms. Shows with a decay of exactly 0; hides with any other.
"""

from skeleton import chunked


def chunked_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return chunked(q, k, v, g.log(), beta, scale=scale, **options)


chunked_kda = chunked_gdn
