"""The check for values that are not finite."""

import torch
from torch import Tensor


def check_finite(**tensors: Tensor | None) -> None:
    """Raise ValueError for the first entry of the named tensors that is infinite or NaN.

    A log decay ``g`` of -inf is valid: it forgets everything.
    """
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        wrong = ~tensor.isfinite()
        if name == "g":
            wrong &= tensor != -torch.inf
        if wrong.any():
            raise ValueError(f"{name} must be finite, but it contains {tensor[wrong][0].item()}.")
