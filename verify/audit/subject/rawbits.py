"""Exact conversion between float64 arrays and the raw little-endian bits of a float format."""

import numpy as np
from numpy.typing import NDArray

_NUMPY = {"float64": "<f8", "float32": "<f4", "float16": "<f2"}
FORMATS = ("float64", "float32", "bfloat16", "float16")


def encode(array: NDArray[np.float64], dtype: str) -> bytes:
    """Raw bits of ``array`` in ``dtype``, in C order.

    Raises:
        ValueError: a value is not exactly representable in ``dtype``; nothing is rounded silently.
    """
    if not representable(array, dtype):
        raise ValueError(f"the array holds values {dtype} cannot represent")
    return _truncate(array, dtype).tobytes()


def decode(raw: bytes, dtype: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The exact float64 values of raw bits; NaN and infinities are kept."""
    if dtype == "bfloat16":
        values = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    else:
        values = np.frombuffer(raw, _NUMPY[dtype])
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return values.astype(np.float64).reshape(shape)


def representable(array: NDArray[np.float64], dtype: str) -> bool:
    """Whether every value of ``array`` is one of ``dtype``'s values."""
    raw = _truncate(array, dtype).tobytes()
    return np.array_equal(decode(raw, dtype, array.shape), array, equal_nan=True)


def _truncate(array: NDArray[np.float64], dtype: str) -> NDArray[np.generic]:
    """Nearest-or-below bits in ``dtype``: exact exactly when the value is representable."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype == "bfloat16":
            return (np.ascontiguousarray(array, dtype="<f4").view("<u4") >> 16).astype("<u2")
        return np.ascontiguousarray(array, dtype=_NUMPY[dtype])
