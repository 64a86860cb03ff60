"""A mode that makes float32 torch code multiply matrices on tensor cores."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from verify.audit.tolerance.tensor_core import TensorCore, multiplied
from verify.numbers.formats import Format, round_array


class OnTensorCores(TorchDispatchMode):  # type: ignore[misc]
    """Every batched product inside is one of tensor cores, its factors rounded to a shorter format."""

    def __init__(self, core: TensorCore, factors: Format) -> None:
        super().__init__()
        self.core, self.factors = core, factors

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func._schema.name.removeprefix("aten::")
        if name.rstrip("_") not in ("bmm", "baddbmm"):
            return func(*args, **kwargs)
        out = kwargs.pop("out", args[0] if name == "baddbmm_" else None)
        beta, alpha = kwargs.pop("beta", 1), kwargs.pop("alpha", 1)
        assert not kwargs, kwargs
        a, b = (torch.from_numpy(round_array(self.factors, x.double().numpy())) for x in args[-2:])
        addend = (args[0] * beta).double() if len(args) == 3 and beta else torch.zeros_like(a @ b)
        if abs(alpha) == 1:
            found = multiplied(alpha * a, b, self.core, addend).float()
        else:
            found = addend.float() + alpha * multiplied(a, b, self.core, torch.zeros_like(addend)).float()
        return found if out is None else out.copy_(found)
