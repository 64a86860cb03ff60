"""Softmax attention in Triton, run by Triton's interpreter on the CPU, against the definition."""

import re
from functools import partial
from itertools import pairwise

import pytest
import torch
from agreement import assert_agrees
from test_softmax import OPTIONS, chosen, counted, inputs, run, whole_numbers

from kernels.softmax.reference import reference_softmax
from kernels.softmax.triton_tiled import triton_softmax


@pytest.fixture(autouse=True)
def _buffers_of_nan():
    """Memory that nobody wrote is NaN, so that whoever reads it is found out."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(5).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("tokens", "keys"), [(35, 35), (9, 35), (35, 9)])
def test_equals_reference(tokens, keys, options):
    """Outputs, logsumexp and gradients; both at the tile size that cuts and at the one that does not."""
    tensors, options = chosen(inputs(tokens, keys, batch=1, heads=2, key_heads=1), options)
    for tile_size in (16, 64):
        form = partial(triton_softmax, tile_size=tile_size)
        assert_agrees(partial(run, options), form, reference_softmax, tensors)


@pytest.mark.parametrize("window", [None, 3])
def test_whole_numbers_are_exact(window):
    q, k, v = whole_numbers(17, 17, torch.float32)
    o, _ = triton_softmax(q, k, v, scale=1.0, window=window, tile_size=16)
    assert torch.equal(o, counted(q, k, v, window))


def test_packed_sequences_do_not_meet():
    tensors, options = chosen(inputs(40, 40, batch=1, heads=2, key_heads=1), OPTIONS["everything"])
    offsets = [0, 3, 3, 21, 40]
    form = partial(triton_softmax, tile_size=16, output_logsumexp=True, **options)
    o, logsumexp = form(**tensors, cu_seqlens=torch.tensor(offsets))
    for start, end in pairwise(offsets):
        part = {name: tensors[name][:, start:end] for name in ("q", "k", "v", "g")}
        alone = form(**part, sink=tensors["sink"], slopes=tensors["slopes"])
        assert torch.equal(o[:, start:end], alone[0])
        assert torch.equal(logsumexp[:, start:end], alone[1])


def test_gate_of_minus_infinity_hides_everything_before():
    tensors, options = chosen(inputs(24, 24, batch=1, heads=2, key_heads=1), OPTIONS["decay"])
    tensors["g"][:, 5] = tensors["g"][:, 20] = -torch.inf
    form = partial(triton_softmax, tile_size=16)
    assert_agrees(partial(run, options), form, reference_softmax, tensors)


@pytest.mark.parametrize(("tokens", "keys"), [(0, 5), (5, 0)])
def test_nothing_to_do(tokens, keys):
    tensors, options = chosen(inputs(tokens, keys), OPTIONS["everything"])
    o, logsumexp = triton_softmax(**tensors, **options, output_logsumexp=True)
    expected = reference_softmax(**tensors, **options, output_logsumexp=True)
    assert torch.equal(o, expected[0])
    torch.testing.assert_close(logsumexp, expected[1])


def test_bad_arguments_are_refused():
    tensors = {name: x for name, x in inputs(3, 3).items() if name in "qkv"}
    for options, sentence in (
        ({"tile_size": 8}, "tile_size must be 16, 32, 64 or 128 in the Triton form, but it is 8."),
        ({"precision": "tf32"}, "precision must be one of ieee, tf32x3, but it is tf32."),
        ({"window": 0}, "window must be at least 1, but it is 0."),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            triton_softmax(**tensors, **options)
