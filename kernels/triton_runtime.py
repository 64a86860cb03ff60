"""Triton, and what must hold before a kernel is launched."""

from torch import Tensor

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError as missing:
    raise ValueError(
        f"The Triton forms need the package {missing.name}, which is not installed: pip install triton."
    ) from missing

PRECISIONS = ("ieee", "tf32x3")
"""How float32 products are formed: by float32 multiplications, or on tensor cores from three products of
TF32 halves, which keep about 22 of the 24 bits of a factor. Float64 products are always float64."""

NARROWEST = 16
"""The narrowest operand of a tensor-core product."""

LAUNCH = {"num_warps": 8, "num_stages": 1}
"""How kernels with products are launched. With 8 warps ptxas spills fewer registers for sm_90 than with 4;
loads ahead of a loop's next round would need more shared memory than there is (tests/gpu/build.py)."""

# With more channels the tiles no longer fit the shared memory of sm_90.
_MOST_CHANNELS = 128

# Triton makes its own functions for the interpreter, or not, when it is imported; kernels, when they are.
_INTERPRETED = not isinstance(tl.sum, triton.JITFunction)
_WILL_INTERPRET = triton.knobs.runtime.interpret


def check_launch(precision: str = "ieee", **tensors: Tensor) -> None:
    """Raise ValueError unless kernels can run so precisely on the named tensors' device and channels."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, but it is {precision}.")
    if _WILL_INTERPRET != _INTERPRETED:
        raise ValueError(
            "TRITON_INTERPRET must be set before triton is first imported, but it was changed after that to "
            f"{_WILL_INTERPRET}."
        )
    for name, tensor in tensors.items():
        if not _INTERPRETED and tensor.device.type not in ("cuda", "meta"):
            raise ValueError(
                f"{name} must be on a CUDA device, or TRITON_INTERPRET=1 be set before triton is imported, "
                f"but it is on {tensor.device}."
            )
        if tensor.shape[-1] > _MOST_CHANNELS:
            raise ValueError(
                f"{name} must have at most {_MOST_CHANNELS} channels in a Triton form, but it has "
                f"{tensor.shape[-1]}."
            )


def width(columns: int, most: int | None = None) -> int:
    """The power of two, at least 16 and not above ``most``, that covers ``columns`` or as many as it can."""
    needed = max(NARROWEST, triton.next_power_of_2(columns))
    return needed if most is None else min(needed, most)
