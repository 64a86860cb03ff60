"""Queries pass through a soft cap far above their usual size: ``cap tanh(q / cap)``.

Shows once entries are well above 1; unit queries hide it within rounding.
"""

import torch
from skeleton import recurrent

CAP = 1024.0


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(CAP * torch.tanh(q.float() / CAP), k, v, g, beta, scale=scale, **options)
