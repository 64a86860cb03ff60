"""Softmax, linear, pooled and certified top-k attention beside torch's scaled_dot_product_attention (SDPA).

float32, B1 H4, K = V = 128, 2 threads or what OMP_NUM_THREADS says. No ratio is reported unless each kernel
first agrees with its float64 reference. Runs are interleaved and ratios taken pair by pair, because the
machine may be shared; the median ratio and its quartiles are printed. Memory is the growth of the peak
resident size of a process of its own.
Run: ``python tests/bench/bench_softmax.py [tokens]`` from the repository root; default 4096 tokens.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from kernels.linear.chunked import chunked_linear
from kernels.linear.reference import reference_linear
from kernels.pooled.blocked import blocked_pooled
from kernels.pooled.reference import reference_pooled
from kernels.softmax.recurrent import recurrent_softmax
from kernels.softmax.reference import reference_softmax
from kernels.softmax.tiled import tiled_softmax
from kernels.topk.certified import certified_topk

HEADS, WIDTH, PAIRS = 4, 128, 5
Run = Callable[[], object]


def draw(tokens: int, queries: int | None = None, heads: int = HEADS) -> tuple[Tensor, Tensor, Tensor]:
    """q [1, queries, H, K]; k, v [1, tokens, H, K]; standard normal."""
    rng = torch.Generator().manual_seed(0)
    lengths = (queries or tokens, tokens, tokens)
    q, k, v = (torch.randn(1, length, heads, WIDTH, generator=rng) for length in lengths)
    return q, k, v


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """torch's attention in this project's layout; a single query sees all keys."""
    heads_first = (x.transpose(1, 2) for x in (q, k, v))
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(*heads_first, is_causal=q.shape[1] > 1).transpose(1, 2)


def check() -> None:
    """Stop unless each kernel's error against float64 shrinks like a rounding error from float32 to float64.

    That is by 2^-29; a wrong formula errs alike in both. The line is the geometric mean, 2^-14.5.
    """
    line = (torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps) ** 0.5
    pooled = partial(blocked_pooled, stride=16)
    pairs: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
        "tiled softmax": (tiled_softmax, reference_softmax),
        "recurrent softmax": (recurrent_softmax, reference_softmax),
        "chunked linear": (chunked_linear, reference_linear),
        "pooled": (pooled, partial(reference_pooled, stride=16)),
    }
    single = draw(300, heads=1)
    double = tuple(x.double() for x in single)
    for name, (kernel, reference) in pairs.items():
        exact, one, two = (
            _output(f, x) for f, x in ((reference, double), (kernel, single), (kernel, double))
        )
        rounding, error = ((x - exact).abs().max().item() for x in (one, two))
        if not 0 < error <= line * rounding:
            raise SystemExit(f"red: {name} errs by {rounding:.1e} in float32 and {error:.1e} in float64")
        print(
            f"{name:<18} agrees with its reference: error {rounding:.1e} in float32, {error:.1e} in float64"
        )


def _output(kernel: Callable[..., object], inputs: tuple[Tensor, ...]) -> Tensor:
    result = kernel(*inputs)
    o = result[0] if isinstance(result, tuple) else result
    assert isinstance(o, Tensor)
    return o


def with_backward(attend: Callable[..., Tensor], inputs: tuple[Tensor, ...]) -> Run:
    """A forward and a backward pass."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    return lambda: torch.autograd.grad(attend(*leaves).sum(), leaves)


def compare(name: str, ours: Run, peer_name: str, peer: Run) -> None:
    """Print the time of each and the ratio peer / ours, above 1 where ours is faster."""
    times = []
    for _ in range(PAIRS + 1):
        pair = []
        for run in (ours, peer):
            start = time.perf_counter()
            run()
            pair.append(time.perf_counter() - start)
        times.append(pair)
    ratios = [theirs / mine for mine, theirs in times[1:]]
    low, middle, high = statistics.quantiles(ratios, n=4)
    mine, theirs = (1e3 * min(column) for column in zip(*times[1:], strict=True))
    label = f"{name:<30} {mine:8.1f} ms   {peer_name:<22} {theirs:8.1f} ms"
    print(f"{label}   ratio {middle:5.2f} ({low:.2f} to {high:.2f})")


def floor(tokens: int) -> None:
    """Print the time of the matrix products alone, at the rate of products of one tile."""
    a, b = torch.randn(HEADS, 256, WIDTH), torch.randn(HEADS, WIDTH, 256)
    start = time.perf_counter()
    for _ in range(200):
        a @ b
    rate = 200 * 2 * HEADS * 256 * 256 * WIDTH / (time.perf_counter() - start)
    flops = 2 * 2 * HEADS * WIDTH * tokens * (tokens + 1) / 2
    print(f"matrix products: {rate / 1e9:.0f} GFLOP/s; floor {1e3 * flops / rate:.0f} ms, with backward")
    print(f"{'':17}{1e3 * 3.5 * flops / rate:.0f} ms (two products forward, five more backward)")


def speed(tokens: int) -> None:
    """Print the table of ratios."""
    inputs = draw(tokens)
    with torch.no_grad():
        compare("tiled softmax", lambda: tiled_softmax(*inputs), "SDPA", lambda: sdpa(*inputs))
    tiled = with_backward(lambda *x: tiled_softmax(*x)[0], inputs)
    compare("tiled softmax, with backward", tiled, "SDPA", with_backward(sdpa, inputs))
    one = draw(tokens, queries=1)
    compare("one decoded token", lambda: recurrent_softmax(*one), "SDPA", lambda: sdpa(*one))
    pooled = partial(blocked_pooled, stride=64, window=128)
    compare("pooled, stride 64, window 128", lambda: pooled(*inputs), "SDPA", lambda: sdpa(*inputs))
    q, k, v = inputs
    certified = partial(certified_topk, 4 * q, k, v, epsilon=1e-3)
    compare("certified top-k (float64)", certified, "SDPA", lambda: sdpa(*inputs))
    if find_spec("fla") is None:
        print("flash-linear-attention is not installed: no peer for linear attention")
        return
    from fla.ops.linear_attn.naive import naive_chunk_linear_attn as naive

    peer = "fla naive chunk"
    compare("chunked linear", lambda: chunked_linear(*inputs), peer, lambda: naive(*inputs))
    linear = with_backward(lambda *x: chunked_linear(*x)[0], inputs)
    compare("chunked linear, with backward", linear, peer, with_backward(naive, inputs))


def memory(kernel: str, tokens: int) -> None:
    """Print by how many MiB the peak resident size grows over forward and backward: one head, own process."""
    attend = {
        "sdpa": sdpa,
        "tiled": lambda *x: tiled_softmax(*x)[0],
        "linear": lambda *x: chunked_linear(*x)[0],
    }
    with_backward(attend[kernel], draw(256, heads=1))()
    inputs = draw(tokens, heads=1)
    before = _peak()
    with_backward(attend[kernel], inputs)()
    print((_peak() - before) / 1024)


def _peak() -> int:
    """The peak resident size of this process in KiB; getrusage may give its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))


def growth(lengths: list[int]) -> None:
    """Print the table of memory; a T x T matrix of scores would take the last column. Linux only."""
    if not Path("/proc/self/status").exists():
        print("peak memory: not measured, this system has no /proc/self/status")
        return
    print(
        f"\npeak memory in MiB, one head, forward and backward\n{'T':>8} {'tiled':>8} {'linear':>8}", end=""
    )
    print(f" {'SDPA':>8} {'T x T':>8}")
    for tokens in lengths:
        row = []
        for kernel in ("tiled", "linear", "sdpa"):
            command = [sys.executable, __file__, "memory", kernel, str(tokens)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            row.append(float(done.stdout))
        print(f"{tokens:>8} " + " ".join(f"{x:8.1f}" for x in row) + f" {4 * tokens**2 / 2**20:8.0f}")


def main(words: list[str]) -> None:
    """Check, then time, then weigh."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    if words[:1] == ["memory"]:
        memory(words[1], int(words[2]))
        return
    tokens = int(words[0]) if words else 4096
    check()
    print(f"\nT = {tokens}; ratios above 1: faster than the peer")
    floor(tokens)
    speed(tokens)
    growth([1024, 2048, 4096, 8192])


if __name__ == "__main__":
    main(sys.argv[1:])
