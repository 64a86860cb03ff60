"""``(I + L)^-1`` as ``(I - L)(I + L^2)(I + L^4)...`` in bfloat16 (FlashKDA#34, there in float16)."""

import functools

import torch
from skeleton import chunked


def doubling(strictly_lower):
    eye = torch.eye(strictly_lower.shape[-1], dtype=torch.bfloat16)
    power = strictly_lower.bfloat16()
    inverse = eye - power
    for _ in range((strictly_lower.shape[-1] - 1).bit_length() - 1):
        power = power @ power
        inverse = inverse @ (eye + power)
    return inverse.float()


chunked_gdn = chunked_kda = functools.partial(chunked, chunk_size=16, inverse=doubling)
