"""The Triton forms under test, which Triton's interpreter runs on the CPU."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

import torch
from conftest import Inputs, Kernel, Mechanism


@dataclass(frozen=True)
class Forms:
    """The Triton forms of one mechanism."""

    mechanism: Mechanism
    recurrent: Kernel
    chunked: Kernel


def triton_forms(mechanism: Mechanism) -> Forms:
    kernels = (
        getattr(import_module(f"kernels.{mechanism.name}.triton_{form}"), f"triton_{form}_{mechanism.name}")
        for form in ("recurrent", "chunked")
    )
    return Forms(mechanism, *kernels)


def buffers_of_nan() -> Iterator[None]:
    """Memory that nobody wrote is NaN, so that whoever reads it is found out."""
    torch.use_deterministic_algorithms(True)
    assert torch.empty(5).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def cut(inputs: Inputs, heads: int) -> Inputs:
    """The first run and heads: one query and key head, which as many value heads share."""
    kept = {name: x[:1, :, : 1 if name in "qk" else heads] for name, x in inputs.items()}
    return kept | {"initial_state": inputs["initial_state"][:1, :heads]}


OFFSETS = [0, 0, 5, 24, 24, 25]


def packed(inputs: Inputs) -> Inputs:
    """The first run as packed sequences, two of them empty, with an initial state for each."""
    inputs = cut(inputs, heads=2)
    states = [(n + 1) * inputs["initial_state"] for n in range(len(OFFSETS) - 1)]
    return inputs | {"initial_state": torch.cat(states), "cu_seqlens": torch.tensor(OFFSETS)}
