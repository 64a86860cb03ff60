"""Tensors as raw bytes, and whether a call changed them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def _raw(tensor: torch.Tensor) -> bytes:
    """The tensor's values as bytes, without numpy."""
    flat = tensor.detach().cpu().contiguous()
    size = flat.numel() * flat.element_size()
    return bytes((ctypes.c_char * size).from_address(flat.data_ptr())) if size else b""


def read_tensors(path: str, headers: list[dict[str, Any]], device: str) -> dict[str, torch.Tensor]:
    """Tensors of a raw file, by argument name."""
    import torch

    tensors = {}
    with open(path, "rb") as file:
        for header in headers:
            raw = bytearray(file.read(header["bytes"]))
            dtype = getattr(torch, header["dtype"])
            tensor = torch.frombuffer(raw, dtype=dtype).clone() if raw else torch.empty(0, dtype=dtype)
            tensors[header["name"]] = tensor.reshape(header["shape"]).to(device)
    return tensors


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in every second place of a larger tensor full of NaN."""
    import torch

    wide = torch.full(
        (*tensor.shape[:-1], 2 * tensor.shape[-1]), torch.nan, dtype=tensor.dtype, device=tensor.device
    )
    wide[..., ::2] = tensor
    return wide[..., ::2]


def surrounded(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, contiguous and aligned as before, between more NaN than numbers on both sides."""
    import torch

    size = tensor.numel()
    margin = (size // 64 + 2) * 64
    buffer = torch.full((size + 2 * margin,), torch.nan, dtype=tensor.dtype, device=tensor.device)
    view = buffer[margin : margin + size].view(tensor.shape)
    return view.copy_(tensor)


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """The first entry along the first axis in the place of all, with stride 0."""
    return tensor[:1].clone().expand(tensor.shape)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda tensor: tensor,
    "strided": strided,
    "surrounded": surrounded,
    "expanded": expanded,
}
"""How inputs may lie in memory."""


def write_tensors(path: str, tensors: dict[str, torch.Tensor]) -> list[dict[str, Any]]:
    """Write the tensors one after another; returns the header of each."""
    headers = []
    with open(path, "wb") as file:
        for name, tensor in tensors.items():
            raw = _raw(tensor)
            dtype = str(tensor.dtype).replace("torch.", "")
            headers.append({"name": name, "dtype": dtype, "shape": list(tensor.shape), "bytes": len(raw)})
            file.write(raw)
    return headers


def mutation(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> str | None:
    """The first input whose bits or shape the call changed, as a sentence; None if none did."""
    import torch

    for name, old in before.items():
        new = after[name].detach().cpu()
        if new.shape != old.shape or new.dtype != old.dtype:
            shape = f"{tuple(old.shape)} {old.dtype} to {tuple(new.shape)} {new.dtype}"
            return f"the target changed its input {name!r} from shape {shape}"
        raw = [_raw(tensor) for tensor in (old, new)]
        if raw[0] == raw[1]:
            continue
        bits = [torch.frombuffer(bytearray(r), dtype=torch.uint8).reshape(old.numel(), -1) for r in raw]
        first = int((bits[0] != bits[1]).any(dim=1).nonzero()[0])
        index: list[int] = []
        rest = first
        for extent in reversed(old.shape):
            rest, position = divmod(rest, extent)
            index.insert(0, position)
        values = f"{old.flatten()[first].item()!r} to {new.flatten()[first].item()!r}"
        return f"the target wrote into its input {name!r}: element {index} went from {values}"
    return None
