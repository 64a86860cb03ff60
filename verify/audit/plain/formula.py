"""The definition's formula in torch, every operation in the inputs' own dtype: what others compare with."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from verify.audit import mechanism
from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent

if TYPE_CHECKING:
    from torch import Tensor


def formula(case: Case, functional: Cotangent | None = None) -> dict[str, Array]:
    """What the formula gives: the output and the state by name, or a functional's gradients by input field.

    It is this project's transcription of the definition, which asks torch for float64; here torch reads the
    dtype of q wherever it does.
    """
    import torch

    dtypes = {field: getattr(torch, case.dtype_of(field)) for field in case.arrays()}
    given = {
        field: torch.from_numpy(np.ascontiguousarray(array)).to(dtypes[field])
        for field, array in case.arrays().items()
    }
    options: dict[str, Any] = {"scale": case.scale}
    if case.kind.stateful:
        options["output_final_state"] = True
    with torch.set_grad_enabled(functional is not None):
        if functional is not None:
            given = {field: x.requires_grad_() for field, x in given.items()}
        with _float64_read_as(dtypes["q"]):
            output, state = mechanism.formula(case.mechanism)(**given, **options)
        results = {"output": output, "state": state} if case.kind.stateful else {"output": output}
        if functional is not None:
            results = _gradients(results, functional, given)
    return {name: x.detach().double().numpy() for name, x in results.items()}


def _gradients(
    results: dict[str, "Tensor"], functional: Cotangent, given: dict[str, "Tensor"]
) -> dict[str, "Tensor"]:
    import torch

    coefficients = {"output": functional.output, "state": functional.state}
    weights = [torch.from_numpy(coefficients[name]).to(x.dtype) for name, x in results.items()]
    connected = [(x, weight) for x, weight in zip(results.values(), weights, strict=True) if x.requires_grad]
    found = torch.autograd.grad(
        [x for x, _ in connected], [*given.values()], [w for _, w in connected], materialize_grads=True
    )
    return dict(zip(given, found, strict=True))


def _float64_read_as(dtype: Any) -> Any:
    """A mode in which torch.float64, given to any function of torch, stands for ``dtype``."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Narrowed(TorchFunctionMode):
        def __torch_function__(
            self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = {name: dtype if x is torch.float64 else x for name, x in (kwargs or {}).items()}
            return function(*(dtype if x is torch.float64 else x for x in args), **named)

    return Narrowed()
