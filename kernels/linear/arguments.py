"""Validation and preparation of the arguments that every form of linear attention takes."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.arguments import working_dtype
from kernels.finite import check_finite
from kernels.linear.features import FeatureMap, features
from kernels.packing import check_offsets, sequence_offsets

State = Tensor | tuple[Tensor, Tensor]
"""S [N, HV, K', V]; with the normaliser (S, z), z [N, H, K'] the sum of the key features."""


class Arguments(NamedTuple):
    """Arguments in the working precision, heads first, the features taken.

    The HV // H value heads that share a key head lie side by side as W columns, and one more column of ones
    when there is a normaliser: its state is the sum of the key features.

    q [B, H, T, K'], already multiplied by the scale; k [B, H, T, K']; v [B, H, T, W]; state [N, H, K', W].
    """

    q: Tensor
    k: Tensor
    v: Tensor
    state: Tensor


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None,
    feature_map: FeatureMap,
    normalise: bool,
    initial_state: State | None,
    cu_seqlens: Tensor | None,
    check: bool,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check the arguments and bring them to ``dtype`` (default: working precision).

    The offsets' values are left to ``sequences``, which torch.compile does not trace. Raises ValueError, in
    one sentence that names the argument and its value.
    """
    _check_inputs(q, k, v, scale)
    if cu_seqlens is not None:
        check_offsets(cu_seqlens, q.shape[0])
    if check:
        check_finite(q=q, k=k, v=v)
    dtype = dtype or working_dtype(q.dtype)
    batch, tokens, heads, width = q.shape
    columns = v.to(dtype).unflatten(2, (heads, v.shape[2] // heads)).flatten(3, 4)
    if normalise:
        columns = torch.cat([columns, columns.new_ones(batch, tokens, heads, 1)], dim=-1)
    mapped_q, mapped_k = features(feature_map, "q", q.to(dtype)), features(feature_map, "k", k.to(dtype))
    if mapped_q.shape != mapped_k.shape:
        raise ValueError(
            f"feature_map must give q and k the same width, but it gave {mapped_q.shape[3]} and"
            f" {mapped_k.shape[3]}."
        )
    runs = batch if cu_seqlens is None else len(cu_seqlens) - 1
    shape = (runs, v.shape[2], mapped_k.shape[3], v.shape[3])
    state = _pack_state(initial_state, shape, heads, normalise, v, dtype, check)
    return Arguments(
        q=mapped_q.transpose(1, 2) * (width**-0.5 if scale is None else scale),
        k=mapped_k.transpose(1, 2),
        v=columns.transpose(1, 2),
        state=state,
    )


def finish(
    o: Tensor, state: Tensor, v: Tensor, normalise: bool, output_final_state: bool
) -> tuple[Tensor, State | None]:
    """From o [B, H, T, W] and state [N, H, K', W] to what the forms return, o still in its dtype.

    A row whose normaliser is exactly 0, which is one without any weight when features are >= 0, gives 0.
    """
    batch, tokens, value_heads, values = v.shape
    heads, total = o.shape[1], None
    if normalise:
        o, weight = o[..., :-1], o[..., -1:]
        state, total = state[..., :-1], state[..., -1]
        o = (o / weight.masked_fill(weight == 0, 1.0)).masked_fill(weight == 0, 0.0)
    o = o.transpose(1, 2).reshape(batch, tokens, value_heads, values)
    if not output_final_state:
        return o, None
    unpacked = state.unflatten(3, (value_heads // heads, values)).transpose(2, 3).flatten(1, 2)
    return o, unpacked if total is None else (unpacked, total)


def sequences(cu_seqlens: Tensor | None, tokens: int) -> Iterator[tuple[slice, slice]]:
    """Per packed sequence its row of the state and its tokens; for a plain batch all at once.

    Raises ValueError for offsets that do not run from 0 to ``tokens`` without decreasing.
    """
    if cu_seqlens is None:
        yield slice(None), slice(0, tokens)
        return
    offsets = sequence_offsets(cu_seqlens, tokens)
    for n in range(len(offsets) - 1):
        yield slice(n, n + 1), slice(offsets[n], offsets[n + 1])


def _pack_state(
    state: State | None,
    shape: tuple[int, int, int, int],
    heads: int,
    normalise: bool,
    v: Tensor,
    dtype: torch.dtype,
    check: bool,
) -> Tensor:
    """[N, H, K', W]."""
    runs, value_heads, keys, values = shape
    group = value_heads // heads
    if state is None:
        return torch.zeros(runs, heads, keys, group * values + normalise, dtype=dtype, device=v.device)
    if isinstance(state, Tensor) == normalise:
        form = "a pair (S, z) with normalise=True" if normalise else "one tensor with normalise=False"
        raise ValueError(f"initial_state must be {form}, but it is a {type(state).__name__}.")
    first, *rest = [state] if isinstance(state, Tensor) else state
    _check_state("initial_state", first, shape, v, dtype, check)
    columns = first.to(dtype).unflatten(1, (heads, group)).transpose(2, 3).flatten(3, 4)
    if normalise:
        _check_state("initial_state[1]", rest[0], (runs, heads, keys), v, dtype, check)
        columns = torch.cat([columns, rest[0].to(dtype).unsqueeze(-1)], dim=-1)
    return columns


def _check_state(
    name: str, part: Tensor, expected: tuple[int, ...], v: Tensor, dtype: torch.dtype, check: bool
) -> None:
    if part.shape != expected:
        raise ValueError(f"{name} must have shape {list(expected)}, but its shape is {list(part.shape)}.")
    if part.dtype not in (working_dtype(v.dtype), dtype):
        raise ValueError(f"{name} must be {working_dtype(v.dtype)}, but its dtype is {part.dtype}.")
    if part.device != v.device:
        raise ValueError(f"{name} must be on q's device {v.device}, but it is on {part.device}.")
    if check:
        check_finite(**{name: part})


def _check_inputs(q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> None:
    for name, tensor, layout in (("q", q, "[B, T, H, K]"), ("v", v, "[B, T, HV, V]")):
        if tensor.ndim != 4:
            raise ValueError(
                f"{name} must have the 4 dimensions {layout}, but its shape is {list(tensor.shape)}."
            )
    batch, tokens, heads, keys = q.shape
    if heads < 1 or keys < 1:
        raise ValueError(
            f"q must have at least one head and one key channel, but its shape is {list(q.shape)}."
        )
    if v.shape[2] % heads:
        raise ValueError(f"v must have a multiple of q's {heads} heads, but it has {v.shape[2]}.")
    for name, tensor, expected in (("k", k, q.shape), ("v", v, (batch, tokens, *v.shape[2:]))):
        if tensor.shape != expected:
            raise ValueError(
                f"{name} must have shape {list(expected)}, but its shape is {list(tensor.shape)}."
            )
    if not q.dtype.is_floating_point:
        raise ValueError(f"q must have a real floating-point dtype, but its dtype is {q.dtype}.")
    for name, tensor in (("k", k), ("v", v)):
        if tensor.dtype != q.dtype:
            raise ValueError(f"{name} must be {q.dtype} when q is, but its dtype is {tensor.dtype}.")
        if tensor.device != q.device:
            raise ValueError(f"{name} must be on q's device {q.device}, but it is on {tensor.device}.")
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, but it is {scale}.")
