"""Correct kernels of algorithms that a convention must declare: without that they err too much."""

import torch
from skeleton import chunked


def doubling(strictly_lower):
    """``(I + L)^-1`` as ``(I - L)(I + L^2)(I + L^4)...`` in float32."""
    eye = torch.eye(strictly_lower.shape[-1])
    power, inverse = strictly_lower, eye - strictly_lower
    for _ in range((strictly_lower.shape[-1] - 1).bit_length() - 1):
        power = power @ power
        inverse = inverse @ (eye + power)
    return inverse


def chunked_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False, chunk_size=64):
    options = {"scale": scale, "initial_state": initial_state, "output_final_state": output_final_state}
    return chunked(q, k, v, g.unsqueeze(-1), beta, chunk_size=chunk_size, inverse=doubling, **options)
