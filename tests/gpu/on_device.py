"""The Triton kernels with their inputs moved to the GPU and their results back, for ``attnproof certify``."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from kernels.delta.triton_chunked import triton_chunked_delta
from kernels.delta.triton_recurrent import triton_recurrent_delta
from kernels.gdn.triton_chunked import triton_chunked_gdn
from kernels.gdn.triton_recurrent import triton_recurrent_gdn
from kernels.kda.triton_chunked import triton_chunked_kda
from kernels.kda.triton_recurrent import triton_recurrent_kda
from kernels.softmax.triton_tiled import triton_softmax

Kernel = Callable[..., tuple[Tensor, Tensor | None]]


def _moved(kernel: Kernel) -> Kernel:
    def called(*arguments: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
        there = [x.cuda() if isinstance(x, Tensor) else x for x in arguments]
        o, extra = kernel(*there, **{k: x.cuda() if isinstance(x, Tensor) else x for k, x in options.items()})
        return o.cpu(), None if extra is None else extra.cpu()

    return called


# The names under which the convention knows the torch forms, of which these have the algorithm.
chunked_delta, recurrent_delta = _moved(triton_chunked_delta), _moved(triton_recurrent_delta)
chunked_gdn, recurrent_gdn = _moved(triton_chunked_gdn), _moved(triton_recurrent_gdn)
chunked_kda, recurrent_kda = _moved(triton_chunked_kda), _moved(triton_recurrent_kda)
tiled_softmax = _moved(triton_softmax)
