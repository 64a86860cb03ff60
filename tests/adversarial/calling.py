"""Calls broken kernels in this process."""

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from fault import FOLDER, Fault
from torch import Tensor

from verify.audit.case import Array, Case, Outcome
from verify.audit.convention.convention import Convention
from verify.audit.gradient.functional import Cotangent


def loaded(fault: Fault) -> Callable[..., Any]:
    """The broken kernel, as a function of a module loaded anew: what earlier calls left is gone."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    function: Callable[..., Any] = getattr(
        importlib.reload(importlib.import_module(fault.file)), fault.function
    )
    return function


@contextlib.contextmanager
def memory_holding(value: float) -> Iterator[None]:
    """Memory that a kernel does not clear holds this number: NaN in a certification, mostly 0 elsewhere."""
    original = torch.Tensor.new_empty

    def filled(like: Tensor, *size: Any, **options: Any) -> Tensor:
        return original(like, *size, **options).fill_(value)

    torch.Tensor.new_empty = filled  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        torch.Tensor.new_empty = original  # type: ignore[method-assign]


def called(
    function: Callable[..., Any], convention: Convention, case: Case, functional: Cotangent | None = None
) -> Outcome:
    """What a kernel of our convention gives, with the gradients of a functional where one is given."""
    tensors = {
        field: torch.from_numpy(array).to(getattr(torch, dtype)).requires_grad_(functional is not None)
        for field, (array, dtype) in convention.inputs(case).items()
    }
    options: dict[str, Any] = {"output_final_state": True} if case.kind.stateful else {}
    output, state = function(**tensors, scale=case.scale, **options)
    gradients: dict[str, Array] = {}
    if functional is not None:
        total = (output.double() * torch.from_numpy(functional.output)).sum()
        if state is not None:
            total = total + (state.double() * torch.from_numpy(functional.state)).sum()
        total.backward()
        for field, tensor in tensors.items():
            assert tensor.grad is not None
            gradients[field] = convention.own_gradient(case, field, tensor.grad.double().numpy())
    final = None if state is None else state.detach().double().numpy()
    return Outcome(output.detach().double().numpy(), final, case.dtype, case.gate_dtype, None, 0.0, gradients)


class InProcess:
    """Stands for a subject whose kernel runs in this process."""

    def __init__(self, function: Callable[..., Any], convention: Convention) -> None:
        self.function, self.convention = function, convention

    def run(self, case: Case, functional: Cotangent | None = None) -> Outcome:
        return called(self.function, self.convention, case, functional)

    def run_packed(self, cases: Sequence[Case]) -> Outcome:
        """Sequences of one head count, packed along T."""
        offsets = torch.tensor([0, *(case.shape.T for case in cases)]).cumsum(0)
        joined = {
            field: np.concatenate(
                [case.arrays()[field] for case in cases], axis=int(field in cases[0].kind.tokens)
            )
            for field in cases[0].arrays()
        }
        tensors = {
            field: torch.from_numpy(array).to(getattr(torch, cases[0].dtype_of(field)))
            for field, array in joined.items()
        }
        options = {"output_final_state": True, "scale": cases[0].scale, self.convention.cu_seqlens: offsets}
        output, state = self.function(**tensors, **options)
        return Outcome(
            output.double().numpy(), state.double().numpy(), cases[0].dtype, cases[0].gate_dtype, None, 0.0
        )
