"""The check for values that are not finite."""

from torch import Tensor


def check_finite(**tensors: Tensor) -> None:
    """Raise ValueError for the first entry of the named tensors that is infinite or NaN."""
    for name, tensor in tensors.items():
        wrong = ~tensor.isfinite()
        if wrong.any():
            raise ValueError(f"{name} must be finite, but it contains {tensor[wrong][0].item()}.")
