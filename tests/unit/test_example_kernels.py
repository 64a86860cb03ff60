"""The examples that are targets for `attnproof certify` compute what they say, exactly on small integers."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from kernels.mamba2.recurrent import recurrent_mamba2
from kernels.softmax.reference import reference_softmax

EXAMPLES = Path(__file__).parents[2] / "examples"
ON_CPU = """
import sys
import torch
sys.path.insert(0, sys.argv[1])
import fla_on_cpu as fla
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
from fla.ops.simple_gla.naive import naive_recurrent_simple_gla
random = torch.Generator().manual_seed(0)
tokens, width = 66, 16
q, v = (torch.randint(-2, 3, (1, tokens, 1, width), generator=random).float() for _ in range(2))
k = torch.nn.functional.one_hot(torch.randint(0, width, (1, tokens, 1), generator=random), width).float()
beta, gates = torch.ones(1, tokens, 1), torch.zeros(1, tokens, 1)
options = dict(scale=1.0, output_final_state=True)
expected = naive_recurrent_gated_delta_rule(q, k, v, beta, gates, **options)
for kernel in (fla.chunk_gated_delta_rule, fla.fused_recurrent_gated_delta_rule):
    got = kernel(q, k, v, g=gates, beta=beta, **options)
    assert all(map(torch.equal, got, expected)), kernel
expected = naive_recurrent_simple_gla(q, k, v, gates, **options)
assert all(map(torch.equal, fla.chunk_simple_gla(q, k, v, gates, **options), expected))
"""


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _integers(*shape: int) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


def test_minimal_ssd_is_the_recurrence_of_mamba2() -> None:
    """On integers, with gates that keep everything or (underflowing) nothing."""
    q, k, v = _integers(2, 24, 3, 4), _integers(2, 24, 3, 4).flip(1), _integers(2, 24, 3, 5)
    gates = -1000.0 * (_integers(2, 24, 3) > 1)
    state = _integers(2, 3, 4, 5)
    output, last = recurrent_mamba2(q, k, v, gates, initial_state=state, output_final_state=True)
    ours = _example("minimal_ssd").ssd_minimal_discrete(v, gates, k, q, 8, state.transpose(-1, -2))
    assert torch.equal(ours[0], output)
    assert torch.equal(ours[1].transpose(-1, -2), last)
    assert gates.any()


@pytest.mark.parametrize("backend", ["math", "flash"])
def test_backends_of_sdpa_compute_causal_attention(backend: str) -> None:
    """Logits of one size give the means of the values so far: exact at 1, 2 and 4 tokens."""
    value = _integers(1, 2, 4, 8)
    zeros = torch.zeros(1, 2, 4, 8)
    output = getattr(_example("sdpa_backends"), backend)(zeros, zeros, value, is_causal=True)
    expected = reference_softmax(*(x.transpose(1, 2) for x in (zeros, zeros, value)), causal=True)
    expected = (expected[0] if isinstance(expected, tuple) else expected).transpose(1, 2)
    for token in (0, 1, 3):
        assert torch.equal(output[:, :, token], expected[:, :, token].float())


@pytest.mark.peers
def test_triton_kernels_of_fla_run_on_a_cpu() -> None:
    """Exactly on integers, over the end of a chunk; in a process of its own, because Triton is patched."""
    run = [sys.executable, "-W", "ignore", "-c", ON_CPU, str(EXAMPLES)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
