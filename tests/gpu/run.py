"""Build, certify and time the Triton kernels on a GPU: ``python tests/gpu/run.py``. Without one it says so.

It has not been run on a GPU yet. What is known without one: Triton's interpreter runs the kernels on a CPU
(tests/unit/kernels/test_triton_*.py), and Triton and ptxas compile them for sm_90 (tests/gpu/build.py), where
most of them spill registers at K = V = 128, with "ieee" more than with "tf32x3". So expect to tune
tile sizes and warps here.

Exit code 1 when a kernel disagrees with the definition or is refuted; nothing is timed then.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).parent
FORMS = {
    "softmax": ["tiled"],
    "delta": ["recurrent", "chunked"],
    "gdn": ["recurrent", "chunked"],
    "kda": ["recurrent", "chunked"],
}
TENSORS = {"softmax": "q k v", "delta": "q k v beta", "gdn": "q k v g beta", "kda": "q k v g beta"}
WIDTH, HEADS = 128, 8
ROUNDS = 20

Kernel = Callable[..., tuple[Tensor, Tensor | None]]


def ours(mechanism: str, form: str) -> Kernel:
    if mechanism == "softmax":
        return import_module("kernels.softmax.triton_tiled").triton_softmax
    return getattr(import_module(f"kernels.{mechanism}.triton_{form}"), f"triton_{form}_{mechanism}")


def reference(mechanism: str) -> Kernel:
    return getattr(import_module(f"kernels.{mechanism}.reference"), f"reference_{mechanism}")


def inputs(mechanism: str, tokens: int, width: int, heads: int, dtype: torch.dtype) -> list[Tensor]:
    """q, k, v, and where the mechanism has them g and beta: unit keys, beta in (0, 1), slow decays."""
    rng = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(1, tokens, heads, *shape, generator=rng)

    tensors = [normal(width), torch.nn.functional.normalize(normal(width), dim=-1), normal(width)]
    if mechanism != "softmax":
        g = torch.nn.functional.logsigmoid(normal(width) + 3)
        tensors += {"kda": [g], "gdn": [g[..., 0].contiguous()], "delta": []}[mechanism]
        tensors.append(normal().sigmoid())
    return [x.to("cuda", dtype) for x in tensors]


def options(mechanism: str, form: str, precision: str) -> dict[str, Any]:
    return {} if form == "recurrent" else {"precision": precision}


def results(kernel: Kernel, tensors: list[Tensor]) -> list[Tensor]:
    """The outputs and the gradients of their squares."""
    leaves = [x.clone().requires_grad_() for x in tensors]
    o = kernel(*leaves)[0]
    return [o.detach(), *torch.autograd.grad(o.square().sum(), leaves)]


def disagreements(mechanism: str, form: str, precision: str) -> list[str]:
    """What errs by more than rounding, at 200 tokens and 32 channels.

    A rounding error shrinks by 2^-29 from float32 to float64, and by more from TF32x3, a wrong formula does
    not: the line is 2^-14.5. Float64 products are never TF32.
    """
    kernel = partial(ours(mechanism, form), **options(mechanism, form, precision))
    double = inputs(mechanism, 200, 32, 2, torch.float64)
    single = [x.float() for x in double]
    double = [x.double() for x in single]
    exact = results(reference(mechanism), double)
    names = ["o", *(f"the gradient of {name}" for name in TENSORS[mechanism].split())]
    wrong = []
    for name, expected, a, b in zip(
        names, exact, results(kernel, single), results(kernel, double), strict=True
    ):
        if not (b - expected).abs().max() <= 2**-14.5 * (a - expected).abs().max():
            wrong.append(f"{name} of {form} {mechanism} ({precision})")
    return wrong


def certified(mechanism: str, form: str) -> bool:
    target = f"{HERE / 'on_device.py'}:{form}_{mechanism}"
    command = [Path(sys.executable).with_name("attnproof"), "certify", target]
    done = subprocess.run(
        [*command, "--mechanism", mechanism, "--gradients", "--results", "attnproof-results"],
        capture_output=True,
        text=True,
        check=False,
    )
    print((done.stdout or done.stderr).splitlines()[0], flush=True)
    return done.returncode == 0


def milliseconds(run: Callable[[], Any]) -> float:
    """Median over the rounds, after two to warm up, on the GPU's own clock."""
    run()
    run()
    times = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def row(mechanism: str, form: str, precision: str, tokens: int) -> str:
    """Seconds to build, milliseconds forward and backward, at B = 1, 8 heads, K = V = 128."""
    kernel = partial(ours(mechanism, form), **options(mechanism, form, precision))
    tensors = inputs(mechanism, tokens, WIDTH, HEADS, torch.float32)
    start = time.perf_counter()
    results(kernel, tensors)
    torch.cuda.synchronize()
    build = time.perf_counter() - start
    forward = milliseconds(lambda: kernel(*tensors))
    leaves = [x.clone().requires_grad_() for x in tensors]
    o = kernel(*leaves)[0]
    upstream = torch.ones_like(o)
    backward = milliseconds(lambda: torch.autograd.grad(o, leaves, upstream, retain_graph=True))
    what = f"{mechanism:<8} {form:<10} {precision:<7} {tokens:>6}"
    return f"{what} {build:8.1f} s {forward:9.3f} ms {backward:9.3f} ms"


def main() -> int:
    if not torch.cuda.is_available():
        print("No GPU that torch can use: the Triton kernels were not built, certified or timed.")
        return 0
    os.environ.pop("TRITON_INTERPRET", None)
    variants = [
        (mechanism, form, precision)
        for mechanism, forms in FORMS.items()
        for form in forms
        for precision in (["ieee"] if form == "recurrent" else ["ieee", "tf32x3"])
    ]
    wrong = [what for variant in variants for what in disagreements(*variant)]
    for what in wrong:
        print(f"red: {what} differs from the definition")
    refuted = [form for mechanism, forms in FORMS.items() for form in forms if not certified(mechanism, form)]
    if wrong or refuted:
        return 1
    print(f"{torch.cuda.get_device_name()}: mechanism, form, precision, T, build, forward, backward")
    for variant in variants:
        for tokens in (1024, 8192):
            print(row(*variant, tokens), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
