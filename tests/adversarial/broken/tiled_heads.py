"""Value head hv reads query/key head hv % H instead of hv // (HV // H)."""

import torch
from skeleton import recurrent


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    heads = torch.arange(v.shape[2]) % q.shape[2]
    options = {"initial_state": initial_state, "output_final_state": output_final_state, "heads": heads}
    return recurrent(q, k, v, g, beta, scale=scale, **options)


recurrent_kda = recurrent_gdn
