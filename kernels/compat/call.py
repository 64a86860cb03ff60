"""Calls of a kernel in the way of another library: in float32, in its state layout, options checked."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Result = tuple[Tensor, Tensor | None]


def call(
    kernel: Callable[..., Result],
    *,
    dtype: torch.dtype,
    initial_state: Tensor | None,
    output_final_state: bool,
    state_v_first: bool = False,
    tensors: dict[str, Tensor | None],
    **options: Any,
) -> Result:
    """o in ``dtype`` and the final state in float32, of the kernel run on the tensors brought to float32.

    With ``state_v_first`` the states, initial and final, are [N, HV, V, K] instead of [N, HV, K, V].
    """
    state = None if initial_state is None else initial_state.float()
    if state_v_first and state is not None:
        state = state.mT
    single = {name: x if x is None else x.float() for name, x in tensors.items()}
    o, final = kernel(**single, initial_state=state, output_final_state=output_final_state, **options)
    if state_v_first and final is not None:
        final = final.mT.contiguous()
    return o.to(dtype), final


def gate(
    use_gate_in_kernel: bool,
    A_log: Tensor | None,
    dt_bias: Tensor | None,
    lower_bound: float | None,
    v: Tensor,
) -> dict[str, Any]:
    """The options of a kernel whose g is a raw gate; ``lower_bound`` alone means A_log = 0.

    Raises ValueError when neither A_log nor ``lower_bound`` is given.
    """
    if not use_gate_in_kernel:
        return {}
    if A_log is None:
        if lower_bound is None:
            raise ValueError(
                "A_log must be given with use_gate_in_kernel and without lower_bound, but is None."
            )
        A_log = torch.zeros(v.shape[2], device=v.device)
    return {"A_log": A_log, "dt_bias": dt_bias, "gate_lower_bound": lower_bound}


def strength(beta: Tensor, use_beta_sigmoid_in_kernel: bool, allow_neg_eigval: bool) -> Tensor:
    """beta, or the sigmoid of it, or twice that. Raises ValueError when twice is asked of no sigmoid."""
    if allow_neg_eigval and not use_beta_sigmoid_in_kernel:
        raise ValueError("allow_neg_eigval must come with use_beta_sigmoid_in_kernel, but that is False.")
    if not use_beta_sigmoid_in_kernel:
        return beta
    return beta.float().sigmoid() * (2 if allow_neg_eigval else 1)


def known(kwargs: dict[str, Any], **defaults: Any) -> list[Any]:
    """The values of the keywords named, in that order. Raises ValueError for any other keyword."""
    for name, value in kwargs.items():
        if name not in defaults:
            raise ValueError(f"{name} is no option here, but it was given as {value!r}.")
    return [kwargs.get(name, default) for name, default in defaults.items()]


def unsupported(**options: Any) -> None:
    """Raise ValueError for an option that is set."""
    for name, value in options.items():
        if value is not None and value is not False:
            given = f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else repr(value)
            raise ValueError(f"{name} is not supported here, but it was given as {given}.")


def reversed_time(
    tensors: dict[str, Tensor | None], cu_seqlens: Tensor | None, initial_state: Tensor | None
) -> tuple[dict[str, Tensor | None], Tensor | None, Tensor | None]:
    """Tensors [B, T, ...], offsets and initial states in reversed order of tokens, hence of sequences."""
    flipped = {name: x if x is None else x.flip(1) for name, x in tensors.items()}
    if cu_seqlens is not None:
        cu_seqlens = cu_seqlens[-1] - cu_seqlens.flip(0)
        initial_state = None if initial_state is None else initial_state.flip(0)
    return flipped, cu_seqlens, initial_state


def restored_time(o: Tensor, final: Tensor | None, cu_seqlens: Tensor | None) -> Result:
    """Output and final states of `reversed_time` in the order of before."""
    if cu_seqlens is not None and final is not None:
        final = final.flip(0)
    return o.flip(1), final
