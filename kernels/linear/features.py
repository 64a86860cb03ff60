"""Feature maps of linear attention, by name or as a function."""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import elu

FeatureMap = str | Callable[[Tensor], Tensor]
"""A name in ``FEATURE_MAPS``, or a function from [B, T, H, K] to [B, T, H, K'], applied to q and to k."""

FEATURE_MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    # elu(x) + 1 for x < 0 is e^x; adding 1 to expm1(x) would lose its digits.
    "elu+1": lambda x: elu(x).clamp(min=0) + x.clamp(max=0).exp(),
    "relu": lambda x: x.relu(),
}


def features(feature_map: FeatureMap, name: str, x: Tensor) -> Tensor:
    """phi(x) [B, T, H, K'] for the argument called ``name``.

    Raises ValueError for an unknown name, and for a function whose result is no such tensor of x's dtype.
    """
    if isinstance(feature_map, str):
        if feature_map not in FEATURE_MAPS:
            known = ", ".join(FEATURE_MAPS)
            raise ValueError(f"feature_map must be a function or one of {known}, but it is {feature_map!r}.")
        return FEATURE_MAPS[feature_map](x)
    mapped = feature_map(x)
    if mapped.ndim != 4 or mapped.shape[:3] != x.shape[:3] or mapped.shape[3] < 1 or mapped.dtype != x.dtype:
        raise ValueError(
            f"feature_map must take {name} {list(x.shape)} to {[*x.shape[:3], 'features']} of {x.dtype}, but"
            f" it gave {list(mapped.shape)} of {mapped.dtype}."
        )
    return mapped
