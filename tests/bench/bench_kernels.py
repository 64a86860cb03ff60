"""How fast the chunked delta-rule kernels are beside their peers: forward, backward, decoding, growth, floor.

Every kernel must agree with the float64 reference before anything is timed. Peers and kernels are timed
in turn, so that a busy machine slows all of them, each in a process of its own (`own_process`);
a ratio is the median over the rounds of peer / ours. It is given twice: with the default settings of the
memory allocator, and where freed memory is kept, which spares functions with large intermediate tensors
their page faults.
Run: ``python tests/bench/bench_kernels.py --rounds 5`` (float32, 2 threads, B 1, H 4, K = V = 128).
"""

import argparse
import statistics
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from own_process import Maker, timed
from torch import Tensor

TOKENS, HEADS, WIDTH, CHUNK, THREADS = 4096, 4, 128, 32, 2
HF_GDN = "transformers.models.qwen3_next.modeling_qwen3_next"
HF_KDA = "transformers.models.kimi_linear.modeling_kimi_linear"

Run = Callable[[], Any]


def inputs(mechanism: str, tokens: int, gate: float | None = None) -> list[Tensor]:
    """q, k, v, (g,) beta: unit keys, beta in (0, 1), slow decays unless ``gate`` fixes them."""
    rng = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(1, tokens, HEADS, *shape, generator=rng)

    k = torch.nn.functional.normalize(normal(WIDTH), dim=-1)
    g = torch.nn.functional.logsigmoid(normal(WIDTH) + 3)
    if gate is not None:
        g = torch.full_like(g, gate)
    gates = {"kda": [g], "gdn": [g[..., 0].contiguous()], "delta": []}[mechanism]
    return [normal(WIDTH), k, normal(WIDTH), *gates, normal().sigmoid()]


def ours(mechanism: str, form: str) -> Callable[..., Any]:
    return getattr(import_module(f"kernels.{mechanism}.{form}"), f"{form}_{mechanism}")


def peers(mechanism: str, form: str) -> dict[str, Callable[..., Any]]:
    """Public torch implementations from PyPI, called with our arguments."""
    fla = "fla.ops."
    if mechanism == "delta":
        naive = import_module(f"{fla}delta_rule.naive")
        chunked = _head_first(naive.delta_rule_chunkwise)
        return {"fla": chunked if form == "chunked" else _head_first(naive.delta_rule_recurrence)}
    if mechanism == "gdn":
        naive, hf = import_module(f"{fla}gated_delta_rule.naive"), import_module(HF_GDN)
        if form == "chunked":
            return {
                "fla": naive.naive_chunk_gated_delta_rule,
                "transformers": hf.torch_chunk_gated_delta_rule.__wrapped__,
            }
        return {
            "fla": lambda q, k, v, g, beta, **o: naive.naive_recurrent_gated_delta_rule(
                q, k, v, beta, g, **o
            ),
            "transformers": _with_state(hf.torch_recurrent_gated_delta_rule.__wrapped__),
        }
    naive, hf = import_module(f"{fla}kda.naive"), import_module(HF_KDA)
    recurrent = _with_state(hf.recurrent_kimi_delta_attention.__wrapped__)
    if form == "recurrent":
        return {"fla": naive.naive_recurrent_kda, "transformers": recurrent}
    return {
        "fla": naive.naive_chunk_kda,
        "transformers": hf.chunk_kimi_delta_attention.__wrapped__,
        "transformers, recurrent": recurrent,
    }


def _head_first(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*tensors: Tensor, **options: Any) -> Any:
        return function(*(x.transpose(1, 2) for x in tensors), **options)

    return called


def _with_state(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(
        *tensors: Tensor, initial_state: Tensor | None = None, output_final_state: bool = False
    ) -> Any:
        return function(*tensors, initial_state, output_final_state)

    return called


def check(mechanism: str) -> None:
    """Refuse to time a kernel that errs by more than rounding, forward or backward.

    A rounding error shrinks by 2^-29 from float32 to float64, a wrong formula does not: the line is 2^-14.5.
    """
    tensors = inputs(mechanism, 200)
    doubled = [x.double() for x in tensors]

    def results(form: str, arguments: list[Tensor]) -> list[Tensor]:
        leaves = [x.clone().requires_grad_() for x in arguments]
        o, state = ours(mechanism, form)(*leaves, output_final_state=True)
        gradients = torch.autograd.grad(o.square().sum() + state.square().sum(), leaves)
        return [o, state, *gradients]

    exact = results("reference", doubled)
    for form in ("chunked", "recurrent"):
        for single, double, expected in zip(
            results(form, tensors), results(form, doubled), exact, strict=True
        ):
            allowed = 2**-14.5 * (single - expected).abs().max()
            if not (double - expected).abs().max() <= allowed:
                raise SystemExit(f"red: {form}_{mechanism} differs from reference_{mechanism}")


def with_backward(function: Callable[..., Any], tensors: list[Tensor]) -> Run:
    leaves = [x.clone().requires_grad_() for x in tensors]

    def run() -> tuple[Tensor, ...]:
        return torch.autograd.grad(function(*leaves)[0].sum(), leaves)

    return run


def forward(function: Callable[..., Any], tensors: list[Tensor]) -> Run:
    def run() -> Any:
        with torch.no_grad():
            return function(*tensors)

    return run


def decode(function: Callable[..., Any], tensors: list[Tensor], steps: int = 50) -> Run:
    """``steps`` calls with one token each, each with the state of the one before."""
    state = torch.zeros(1, HEADS, WIDTH, WIDTH)

    def run() -> None:
        current = state
        with torch.no_grad():
            for t in range(steps):
                token = [x[:, t : t + 1] for x in tensors]
                _, current = function(*token, initial_state=current, output_final_state=True)

    return run


WORK: dict[str, tuple[Callable[..., Run], str, int]] = {
    "forward": (forward, "chunked", TOKENS),
    "forward+backward": (with_backward, "chunked", TOKENS),
    "decode, 50 tokens": (decode, "recurrent", TOKENS),
}
"""Of each kind of call what makes it, the form it is made of and the tokens of its inputs."""


def compare(mechanism: str, what: str, rounds: int, target: float) -> None:
    """One row: our best time, the best time and name of the fastest peer, the ratio over the rounds; and
    the ratio where memory is kept."""
    names = ["ours", *peers(mechanism, WORK[what][1])]
    makers: dict[str, Maker] = {name: (run_of, (mechanism, what, name)) for name in names}
    times = timed(makers, rounds, "default")
    fastest = min(names[1:], key=lambda name: statistics.median(times[name]))
    kept = timed({name: makers[name] for name in ("ours", fastest)}, rounds, "kept")
    print(
        f"{mechanism:<6} {what:<17} {min(times['ours']):9.2f} ms {min(times[fastest]):9.2f} ms  {fastest:<24}"
        f"{_ratio(times, fastest):6.2f} × (target {target:g})   {_ratio(kept, fastest):6.2f} ×",
        flush=True,
    )


def _ratio(times: dict[str, list[float]], peer: str) -> float:
    return statistics.median(theirs / mine for theirs, mine in zip(times[peer], times["ours"], strict=True))


def run_of(mechanism: str, what: str, name: str) -> Run:
    """What ``compare`` times: one function, ours or a peer's, on the inputs of the bench."""
    make, form, tokens = WORK[what]
    torch.set_num_threads(THREADS)
    warnings.filterwarnings("ignore")
    function = ours(mechanism, form) if name == "ours" else peers(mechanism, form)[name]
    return make(function, inputs(mechanism, tokens))


def gemm() -> Run:
    """A product of two matrices large enough to reach the rate of the machine."""
    torch.set_num_threads(THREADS)
    a = torch.randn(2048, 2048)
    return lambda: a @ a


def flops(mechanism: str) -> float:
    """Of the matrix products of the forward pass: three with the state, two scores, two with the values.

    With a decay per channel only the lower half of the scores is formed.
    """
    scores = CHUNK * WIDTH * (2 if mechanism == "kda" else 4)
    return HEADS * TOKENS * (6 * WIDTH * WIDTH + scores + 4 * CHUNK * WIDTH)


def floor(rounds: int) -> None:
    """Distance of the forward pass from the time its multiplications alone would take."""
    mechanisms = ("kda", "gdn", "delta")
    makers: dict[str, Maker] = {name: (run_of, (name, "forward", "ours")) for name in mechanisms}
    best = {
        name: min(series) for name, series in timed({"gemm": (gemm, ()), **makers}, rounds, "kept").items()
    }
    rate = 2 * 2048**3 / best["gemm"]
    for mechanism in mechanisms:
        least = flops(mechanism) / rate
        print(
            f"{mechanism:<6} matmul floor {least:6.1f} ms ({flops(mechanism) / 1e9:.2f} GFLOP at "
            f"{rate / 1e6:.0f} GFLOP/s): ours is {best[mechanism] / least:.1f} × that"
        )


def growth_of(mechanism: str, tokens: int) -> Run:
    """Our forward pass over so many tokens."""
    torch.set_num_threads(THREADS)
    return forward(ours(mechanism, "chunked"), inputs(mechanism, tokens))


def growth(rounds: int) -> None:
    """Time per token from 1k to 32k tokens, relative to 1k."""
    for mechanism in ("kda", "gdn", "delta"):
        makers: dict[str, Maker] = {str(1024 << i): (growth_of, (mechanism, 1024 << i)) for i in range(6)}
        times = timed(makers, rounds, "kept")
        best = {name: min(series) / int(name) for name, series in times.items()}
        series = "  ".join(f"{int(name) // 1024}k {cost / best['1024']:.2f}" for name, cost in best.items())
        print(f"{mechanism:<6} time per token by T, relative to 1k: {series}")


def strong_gates() -> None:
    """Gradients at 5 nats of decay per token, where exponentials formed before masking overflow."""
    for mechanism in ("kda", "gdn"):
        tensors = inputs(mechanism, 256, gate=-5.0)
        named = {"ours": ours(mechanism, "chunked"), **peers(mechanism, "chunked")}
        words = []
        for name, function in named.items():
            finite = all(x.isfinite().all() for x in with_backward(function, tensors)())
            words.append(f"{name} {'finite' if finite else 'NOT FINITE'}")
            if name == "ours" and not finite:
                raise SystemExit(f"red: chunked_{mechanism} has gradients that are not finite at g = -5")
        print(f"{mechanism:<6} gradients at g = -5: {', '.join(words)}")


def main() -> None:
    """Check, then print one table."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(THREADS)
    parser = argparse.ArgumentParser(description="Times the delta-rule kernels beside their peers.")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is timed (default 5)")
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error(f"--rounds must be at least 1, but it is {rounds}.")
    for mechanism in ("kda", "gdn", "delta"):
        check(mechanism)
    print(
        f"float32, 2 threads, B 1, H {HEADS}, K = V = {WIDTH}, T = {TOKENS}; all kernels agree with reference"
    )
    print(f"{'':<24} {'ours':>12} {'fastest peer':>12} {'ratio':>32} {'memory kept':>24}")
    for mechanism, target in (("kda", 6.0), ("gdn", 2.0), ("delta", 2.0)):
        compare(mechanism, "forward", rounds, target)
    for mechanism in ("kda", "gdn", "delta"):
        compare(mechanism, "forward+backward", max(2, rounds // 2), 2.0)
    for mechanism in ("kda", "gdn", "delta"):
        compare(mechanism, "decode, 50 tokens", rounds, 1.5)
    strong_gates()
    floor(rounds)
    growth(max(2, rounds // 2))


if __name__ == "__main__":
    main()
