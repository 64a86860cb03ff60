"""E2: the write strength goes through bfloat16 (vllm#53877).

Shows for any strength that bfloat16 does not hold; hides for those that it does.
"""

from skeleton import recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(q, k, v, g, beta.bfloat16().float(), scale=scale, **options)


recurrent_kda = recurrent_gdn
