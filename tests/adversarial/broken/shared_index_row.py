"""H4: backward, two queries share the keys that the first of them selected (cudnn-frontend#388).

There the keys are a top-k selection; here they are those up to the query. Shows in gradients wherever the
second query of a pair selects another key; hides forward, and for a single token.
"""

import functools

import torch
from attention_backward import attention, causal_logits


def shared(q, k, scale):
    rows = torch.arange(q.shape[1])
    hidden = rows > rows[:, None] // 2 * 2
    return causal_logits(q, k, scale).masked_fill(hidden, -torch.inf)


tiled_softmax = functools.partial(attention, logits=shared)
