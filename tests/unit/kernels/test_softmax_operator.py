"""Tiled softmax attention as an operator: torch.library's own checks, compilation, gradcheck, memory."""

from collections import Counter
from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.softmax.arguments import prepare
from kernels.softmax.operator import attend_backward, attend_forward, operator, operator_backward
from kernels.softmax.tiled import tiled_softmax


def inputs(tokens=7, keys=9):
    rng = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    return {
        "q": normal(1, tokens, 4, 3),
        "k": normal(1, keys, 2, 3),
        "v": normal(1, keys, 2, 2),
        "g": -normal(1, keys, 4).abs(),
        "slopes": normal(4).abs(),
        "sink": normal(4),
    }


@pytest.mark.parametrize(
    ("names", "packing"),
    [
        ("q k v", (None, None)),
        ("q k v g slopes sink", (torch.tensor([0, 3, 3, 7]), torch.tensor([0, 4, 5, 9]))),
    ],
    ids=["plain", "packed, every option"],
)
def test_operator_passes_the_checks_of_torch_library(names, packing):
    prepared = prepare(**{name: x for name, x in inputs().items() if name in names.split()})
    arguments = [None if x is None else x.detach().requires_grad_() for x in prepared]
    torch.library.opcheck(operator, (*arguments, *packing, True, 3, 4))
    with torch.no_grad():
        outputs = operator(*arguments, *packing, True, 3, 4)
    upstream = [torch.randn_like(x) for x in outputs]
    detached = [None if x is None else x.detach() for x in arguments]
    torch.library.opcheck(operator_backward, (*upstream, *detached, *outputs, *packing, True, 3, 4))


@pytest.mark.parametrize("options", [{"window": 2}, {"tile_size": 4}], ids=str)
def test_gradients_are_those_of_finite_differences(options):
    given = {name: x.requires_grad_() for name, x in inputs(3, 4).items()}

    def attention(*tensors):
        named = dict(zip(given, tensors, strict=True))
        return tiled_softmax(**named, **{"tile_size": 2, **options}, output_logsumexp=True)

    assert torch.autograd.gradcheck(attention, tuple(given.values()))


def test_compiles_and_exports_as_one_graph():
    given = inputs()
    leaves = {name: x.clone().requires_grad_() for name, x in given.items()}
    compiled = torch.compile(partial(tiled_softmax, tile_size=4), backend="aot_eager", fullgraph=True)
    tiled_softmax(**leaves, tile_size=4)[0].sum().backward()
    expected = [leaf.grad.clone() for leaf in leaves.values()]
    for leaf in leaves.values():
        leaf.grad = None
    compiled(**leaves)[0].sum().backward()
    for leaf, gradient in zip(leaves.values(), expected, strict=True):
        assert torch.equal(leaf.grad, gradient)

    class Layer(torch.nn.Module):
        def forward(self, q, k, v):
            return tiled_softmax(q, k, v)[0]

    qkv = given["q"], given["k"], given["v"]
    exported = torch.export.export(Layer(), qkv).module()
    assert torch.equal(exported(*qkv), tiled_softmax(*qkv)[0])


class LargestTensor(TorchDispatchMode):
    """Remembers how many entries the largest tensor has that any operation returns."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else [out]:
            if isinstance(x, torch.Tensor):
                self.entries = max(self.entries, x.untyped_storage().size() // x.element_size())
        return out


@pytest.mark.parametrize("name", ["plain", "everything"])
def test_no_matrix_of_all_scores_exists(name):
    """No tensor exceeds T (K + V) or one tile of scores, forward or backward; T x T is 16 times that."""
    tokens, width, tile = 256, 8, 16
    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, tokens, 1, width, generator=rng) for _ in range(3))
    extra = {}
    if name == "everything":
        extra = {
            "g": -torch.rand(1, tokens, 1, generator=rng),
            "sink": torch.zeros(1),
            "slopes": torch.ones(1),
        }
    arguments = prepare(q, k, v, **extra)
    options = (None, None, True, None, tile)
    with LargestTensor() as largest:
        o, logsumexp = attend_forward(*arguments, *options)
        attend_backward(o, logsumexp, *arguments, o, logsumexp, *options)
    assert largest.entries <= max(tokens * 2 * width, tile * tile)


class Operations(TorchDispatchMode):
    """Counts the operations by name."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def test_eager_passes_are_visible_to_dispatch_modes():
    leaves = {name: x.requires_grad_() for name, x in inputs().items()}
    with Operations() as forward:
        o, _ = tiled_softmax(**leaves, tile_size=16)
    with Operations() as backward:
        o.sum().backward()
    assert forward.counts["aten::bmm"] == 2
    assert backward.counts["aten::bmm"] == 5
    assert not any(name.startswith("attnproof") for name in forward.counts | backward.counts)
