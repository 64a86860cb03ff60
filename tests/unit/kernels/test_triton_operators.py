"""The Triton forms as operators of torch.library, under compilers, and where Triton is missing."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from kernels import triton_operators
from kernels.softmax import triton_tiled

OPERATORS = torch.ops.attnproof
assert triton_operators
assert triton_tiled


def normal(*shape):
    rng = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize(
    ("form", "gates", "offsets"),
    [("recurrent", 1, [0, 2, 2, 6]), ("chunked", 4, [0, 2, 2, 6]), ("chunked", 0, None)],
)
def test_delta_rule_operators_pass_opcheck(form, gates, offsets):
    batch, sequences = (2, 2) if offsets is None else (1, 3)
    q, k, v = (normal(batch, 6, 1, width).requires_grad_() for width in (4, 4, 3))
    g = (-normal(batch, 6, 1, gates).abs()).requires_grad_() if gates else None
    beta = normal(batch, 6, 1).sigmoid().requires_grad_()
    cu_seqlens = None if offsets is None else torch.tensor(offsets)
    arguments = [q, k, v, g, beta, normal(sequences, 1, 4, 3).requires_grad_(), cu_seqlens]
    operator = OPERATORS.triton_recurrent_delta_rule
    if form == "chunked":
        operator = OPERATORS.triton_chunked_delta_rule
        arguments += [4, "ieee"]
    passes_opcheck(operator, *arguments)


def passes_opcheck(operator, *arguments):
    assert set(torch.library.opcheck(operator.default, arguments).values()) == {"SUCCESS"}


@pytest.mark.parametrize(("gates", "offsets"), [(1, [0, 2, 2, 6]), (0, None)])
def test_delta_rule_backward_operator_passes_opcheck(gates, offsets):
    q, k, v, d_o = (normal(1, 6, 1, width) for width in (4, 4, 3, 3))
    g = -normal(1, 6, 1, gates).abs() if gates else None
    state = normal(1 if offsets is None else 3, 1, 4, 3)
    cu_seqlens = None if offsets is None else torch.tensor(offsets)
    inputs, options = (q, k, v, g, normal(1, 6, 1).sigmoid()), (4, "ieee")
    _, final, *saved = OPERATORS.triton_chunked_delta_rule(*inputs, state, cu_seqlens, *options)
    passes_opcheck(
        OPERATORS.triton_chunked_delta_rule_backward, d_o, final, *inputs, *saved, cu_seqlens, *options
    )


@pytest.mark.parametrize("offsets", [None, [0, 2, 2, 6]])
def test_softmax_operator_passes_opcheck(offsets):
    q, k, v = (normal(1, 1, 6, width) for width in (4, 4, 3))
    q = torch.stack([q, -q], dim=2)
    g, slopes, sink = -normal(1, 1, 2, 6).abs(), normal(1, 2).abs(), normal(1, 2)
    tensors = [x.detach().requires_grad_() for x in (q, k, v, g, slopes, sink)]
    cu_seqlens = None if offsets is None else torch.tensor(offsets)
    options = (cu_seqlens, None, True, 4, 16, "ieee")
    passes_opcheck(OPERATORS.triton_softmax, *tensors, *options)
    detached = [x.detach() for x in tensors]
    outputs = OPERATORS.triton_softmax(*detached, *options)
    backward = OPERATORS.triton_softmax_backward
    passes_opcheck(backward, *map(torch.ones_like, outputs), *detached, *outputs, *options)


def test_compiled_equals_eager(mechanism):
    """One graph without breaks, forward and backward."""
    module = import_module(f"kernels.{mechanism.name}.triton_chunked")
    kernel = getattr(module, f"triton_chunked_{mechanism.name}")

    def run(inputs):
        o, state = kernel(**inputs, output_final_state=True, chunk_size=8, qk_l2norm=True)
        return o, state, o.square().sum() + state.square().sum()

    inputs = {name: x[:1] for name, x in mechanism.random(11).items()}
    eager, compiled = ({name: x.clone().requires_grad_() for name, x in inputs.items()} for _ in range(2))
    expected = run(eager)
    found = torch.compile(run, backend="aot_eager", fullgraph=True)(compiled)
    expected[-1].backward()
    found[-1].backward()
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a, b)
    for name in inputs:
        assert torch.equal(compiled[name].grad, eager[name].grad), name


CALL = """
import torch
from kernels.delta.triton_recurrent import triton_recurrent_delta
x = torch.zeros(1, 2, 1, 4)
triton_recurrent_delta(x, x, x, x[..., 0])
"""


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        (
            "",
            "q must be on a CUDA device, or TRITON_INTERPRET=1 be set before triton is imported, "
            "but it is on cpu.",
        ),
        (
            "import os, triton; os.environ['TRITON_INTERPRET'] = '1'",
            "TRITON_INTERPRET must be set before triton is first imported, but it was changed after that to "
            "True.",
        ),
        (
            "import sys; sys.modules['triton'] = None",
            "The Triton forms need the package triton, which is not installed: pip install triton.",
        ),
    ],
)
def test_where_triton_cannot_run_one_sentence_says_why(before, sentence):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", before + CALL]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.endswith(f"ValueError: {sentence}\n")


def test_kernels_compile_for_hopper(tmp_path):
    """By Triton and ptxas, which need no GPU; the interpreter accepts what they refuse."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
    script = Path(__file__).parents[2] / "gpu" / "build.py"
    done = subprocess.run(
        [sys.executable, script, "16", "tf32x3"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 13
