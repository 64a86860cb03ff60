"""Validation and preparation of the arguments that every form of softmax attention takes."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.arguments import working_dtype
from kernels.finite import check_finite


class Arguments(NamedTuple):
    """Arguments in the working precision, heads first; G = H // HKV query heads share a key head.

    q [B, HKV, G, T, K], already multiplied by the scale; k [B, HKV, S, K]; v [B, HKV, S, V];
    g [B, HKV, G, S], natural-log decay per token, or None; slopes and sink [HKV, G], or None.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor | None
    slopes: Tensor | None
    sink: Tensor | None


class Packing(NamedTuple):
    """Bounds of packed sequences, int tensors [N + 1] on any device, or None for a plain batch."""

    queries: Tensor | None = None
    keys: Tensor | None = None


UNPACKED = Packing()


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    *,
    scale: float | None = None,
    slopes: Tensor | None = None,
    sink: Tensor | None = None,
    causal: bool = True,
    window: int | None = None,
    packing: Packing = UNPACKED,
    check: bool = False,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check everything but the values of tensors, and bring it to ``dtype`` (default: working precision).

    Several sink logits per head, [H, n], become their logsumexp. What needs values (``check_values``,
    ``sequences``) is left to code that torch.compile does not trace, except ``check``, which looks for
    non-finite q, k, v.

    Raises ValueError, in one sentence that names the argument and its value.
    """
    _check_heads(q, k, v)
    batch, tokens, heads, width = q.shape
    keys, key_heads = k.shape[1:3]
    _check_optional("g", g, (batch, keys, heads))
    _check_optional("slopes", slopes, (heads,))
    if sink is not None and not (sink.ndim in (1, 2) and sink.shape[0] == heads and sink.numel()):
        shape = list(sink.shape)
        raise ValueError(f"sink must have shape [{heads}] or [{heads}, n], n >= 1, but its shape is {shape}.")
    _check_types(q, {"k": k, "v": v, "g": g, "slopes": slopes, "sink": sink})
    _check_scalars(scale, causal, window, g)
    _check_packing(packing, batch, tokens, keys)
    if check:
        check_finite(q=q, k=k, v=v)
    dtype = dtype or working_dtype(q.dtype)
    groups = (key_heads, heads // key_heads)
    if sink is not None:
        sink = sink.to(dtype)
        sink = (sink if sink.ndim == 1 else sink.logsumexp(1)).unflatten(0, groups)
    return Arguments(
        q=q.to(dtype).transpose(1, 2).unflatten(1, groups) * (width**-0.5 if scale is None else scale),
        k=k.to(dtype).transpose(1, 2),
        v=v.to(dtype).transpose(1, 2),
        g=None if g is None else g.to(dtype).transpose(1, 2).unflatten(1, groups),
        slopes=None if slopes is None else slopes.to(dtype).unflatten(0, groups),
        sink=sink,
    )


def finish(o: Tensor, logsumexp: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """From [B, HKV, G, T, V] and [B, HKV, G, T] to [B, T, H, V] in ``dtype`` and [B, T, H]."""
    return o.flatten(1, 2).transpose(1, 2).to(dtype), logsumexp.flatten(1, 2).transpose(1, 2)


def check_values(g: Tensor | None, slopes: Tensor | None) -> None:
    """Raise ValueError for a gate above 0 or a slope that is negative or not finite. NaN gates propagate; on
    the meta device there are no values."""
    if any(x is not None and x.is_meta for x in (g, slopes)):
        return
    if g is not None and (g > 0).any():
        raise ValueError(
            f"g must be a natural-log decay of at most 0, but its largest entry is {g.max().item()}."
        )
    if slopes is not None and not ((slopes >= 0) & slopes.isfinite()).all():
        raise ValueError(f"slopes must be finite and at least 0, but they are {slopes.flatten().tolist()}.")


def sequences(packing: Packing, tokens: int, keys: int) -> Iterator[tuple[slice, slice]]:
    """The query rows and key rows of each packed sequence; of a plain batch, all rows once.

    Raises ValueError when bounds do not start at 0, decrease, or do not end at the number of rows.
    """
    if packing.queries is None:
        yield slice(0, tokens), slice(0, keys)
        return
    bounds = _bounds("cu_seqlens", packing.queries, tokens)
    key_bounds = bounds if packing.keys is None else _bounds("cu_seqlens_k", packing.keys, keys)
    for n in range(len(bounds) - 1):
        yield slice(bounds[n], bounds[n + 1]), slice(key_bounds[n], key_bounds[n + 1])


def _bounds(name: str, tensor: Tensor, rows: int) -> list[int]:
    bounds: list[int] = tensor.tolist()
    if bounds[0] != 0 or bounds[-1] != rows:
        raise ValueError(f"{name} must run from 0 to {rows}, but it runs from {bounds[0]} to {bounds[-1]}.")
    for n in range(len(bounds) - 1):
        if bounds[n] > bounds[n + 1]:
            raise ValueError(f"{name} must not decrease, but {bounds[n + 1]} follows {bounds[n]}.")
    return bounds


def _check_heads(q: Tensor, k: Tensor, v: Tensor) -> None:
    layouts = {"q": "[B, T, H, K]", "k": "[B, S, HKV, K]", "v": "[B, S, HKV, V]"}
    for (name, layout), tensor in zip(layouts.items(), (q, k, v), strict=True):
        if tensor.ndim != 4:
            raise ValueError(
                f"{name} must have the 4 dimensions {layout}, but its shape is {list(tensor.shape)}."
            )
    batch, _, heads, width = q.shape
    keys, key_heads = k.shape[1:3]
    if heads < 1 or width < 1:
        raise ValueError(
            f"q must have at least one head and one key channel, but its shape is {list(q.shape)}."
        )
    if key_heads < 1 or heads % key_heads:
        raise ValueError(f"q must have a multiple of k's {key_heads} heads, but it has {heads}.")
    _check_optional("k", k, (batch, keys, key_heads, width))
    _check_optional("v", v, (batch, keys, key_heads, v.shape[3]))


def _check_optional(name: str, tensor: Tensor | None, expected: tuple[int, ...]) -> None:
    if tensor is not None and tensor.shape != expected:
        raise ValueError(f"{name} must have shape {list(expected)}, but its shape is {list(tensor.shape)}.")


def _check_types(q: Tensor, others: dict[str, Tensor | None]) -> None:
    if not q.dtype.is_floating_point:
        raise ValueError(f"q must have a real floating-point dtype, but its dtype is {q.dtype}.")
    for name, tensor in others.items():
        if tensor is None:
            continue
        allowed = (q.dtype,) if name in ("k", "v") else (q.dtype, working_dtype(q.dtype))
        if tensor.dtype not in allowed:
            choices = " or ".join(dict.fromkeys(map(str, allowed)))
            raise ValueError(
                f"{name} must be {choices} when q is {q.dtype}, but its dtype is {tensor.dtype}."
            )
        if tensor.device != q.device:
            raise ValueError(f"{name} must be on q's device {q.device}, but it is on {tensor.device}.")


def _check_scalars(scale: float | None, causal: bool, window: int | None, g: Tensor | None) -> None:
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, but it is {scale}.")
    if window is not None and window < 1:
        raise ValueError(f"window must be at least 1, but it is {window}.")
    if g is not None and not causal:
        raise ValueError(
            "g must be None unless causal is True: a decay runs from an earlier token to a later one."
        )


def _check_packing(packing: Packing, batch: int, tokens: int, keys: int) -> None:
    if packing.queries is None:
        if packing.keys is not None:
            raise ValueError("cu_seqlens_k needs cu_seqlens, but cu_seqlens is None.")
        return
    if batch != 1:
        raise ValueError(f"cu_seqlens needs a batch of 1, but q has a batch of {batch}.")
    for name, bounds in (("cu_seqlens", packing.queries), ("cu_seqlens_k", packing.keys)):
        if bounds is None:
            continue
        if bounds.ndim != 1 or len(bounds) < 2 or bounds.dtype not in (torch.int32, torch.int64):
            raise ValueError(
                f"{name} must be an int32 or int64 tensor [N + 1] with N >= 1, but it is {bounds.dtype} of"
                f" shape {list(bounds.shape)}."
            )
    if packing.keys is None and tokens != keys:
        raise ValueError(f"cu_seqlens_k must be given when k has {keys} tokens and q has {tokens}.")
    if packing.keys is not None and packing.keys.shape != packing.queries.shape:
        raise ValueError(
            f"cu_seqlens_k must have cu_seqlens' {len(packing.queries)} entries, but it has"
            f" {len(packing.keys)}."
        )
