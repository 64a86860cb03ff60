"""Arrays of numbers from ``.npz`` and ``.safetensors`` files, without torch."""

from pathlib import Path
from typing import Any

from verify.model.errors import RequestError

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}


def load(path: Path) -> dict[str, Any]:
    """The arrays of a file by name, as NumPy arrays; floats are kept exactly.

    Raises:
        RequestError: the file cannot be read, is neither kind, or holds a type that is not a number's.
    """
    readers = {".npz": _npz, ".safetensors": _safetensors}
    if path.suffix not in readers:
        raise RequestError(f"{path} is neither a .npz nor a .safetensors file")
    try:
        return readers[path.suffix](path)
    except OSError as problem:
        raise RequestError(f"{path} cannot be read: {problem.strerror or problem}") from problem


def _npz(path: Path) -> dict[str, Any]:
    import zipfile
    import zlib

    import numpy as np

    try:
        # np.load by itself also takes a single array, which has no names.
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise RequestError(f"{path} is not an .npz file of plain arrays: {problem}") from problem
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            raise RequestError(f"{name} in {path} has type {array.dtype}; give floats or integers")
    return arrays


def _safetensors(path: Path) -> dict[str, Any]:
    import numpy as np
    from safetensors import SafetensorError, deserialize

    try:
        tensors = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as problem:
        raise RequestError(f"{path} is not a .safetensors file: {problem}") from problem
    arrays = {}
    for name, tensor in tensors:
        dtype, data = tensor["dtype"], bytes(tensor["data"])
        if dtype == "BF16":
            # The upper half of a float32.
            flat = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        elif dtype in _DTYPES:
            flat = np.frombuffer(data, _DTYPES[dtype])
        else:
            known = ", ".join([*_DTYPES, "BF16"])
            raise RequestError(f"{name} in {path} has type {dtype}; known: {known}")
        arrays[name] = flat.reshape(tensor["shape"])
    return arrays
