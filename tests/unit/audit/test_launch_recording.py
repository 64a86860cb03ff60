"""Launches of Triton kernels recorded on tensors without memory."""

from importlib import import_module
from typing import Any

import pytest
import torch

from verify.audit.subject.worker.large import launches
from verify.audit.subject.worker.launches import recording

triton = pytest.importorskip("triton")


@triton.jit
def _kernel(x, y, n, WIDTH: triton.language.constexpr = 8):
    pass


@triton.autotune(configs=[triton.Config({"WIDTH": w}) for w in (4, 2)], key=["n"])
@triton.jit
def _tuned(x, y, n, WIDTH: triton.language.constexpr):
    pass


def test_arguments_and_grid_are_those_of_the_call() -> None:
    before = type(_kernel).run
    with recording() as recorded:
        x = torch.empty(2**33, dtype=torch.float16)
        _kernel[(7, 5)](x[3:], None, 2**40)
        _tuned[lambda given: (given["n"] // given["WIDTH"],)](x, x.view(2, -1).T, 16)
    first, second = recorded.launches
    assert type(_kernel).run is before
    assert first["grid"] == [7, 5, 1]
    assert first["file"] == __file__
    arguments = first["arguments"]
    assert (arguments["y"], arguments["n"], arguments["WIDTH"]) == (
        {"value": None},
        {"value": 2**40},
        {"value": 8},
    )
    own = arguments["x"]
    assert (own["before"], own["after"], own["bytes"]) == (3, 2**33 - 3, 2**34)
    assert (own["dtype"], own["values"]) == ("float16", None)
    assert second["grid"] == [4, 1, 1]
    assert second["arguments"]["WIDTH"] == {"value": 4}
    assert second["arguments"]["y"]["memory"] == second["arguments"]["x"]["memory"] == own["memory"]


def test_numbers_are_known_until_something_is_written() -> None:
    with recording() as recorded:
        known = torch.tensor([[1, 5], [7, 9]])
        _kernel[(1,)](known, known.reshape(-1).long(), 1)
        known[0] = 3
        _kernel[(1,)](known, known + 1, 1)
    before, after = (launch["arguments"] for launch in recorded.launches)
    assert before["x"]["values"] == before["y"]["values"] == [1, 5, 7, 9]
    assert after["x"]["values"] is after["y"]["values"] is None


def test_the_backward_pass_is_recorded_too() -> None:
    """Of ours, through registered operators, at 2^31 elements."""
    kernel = import_module("kernels.gdn.triton_chunked").triton_chunked_gdn
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys("qkv", (16, 2**14, 64, 128))
    shapes |= dict.fromkeys(("g", "beta"), (16, 2**14, 64))
    request: dict[str, Any] = {
        "tensors": [{"name": n, "shape": shape, "dtype": "float32"} for n, shape in shapes.items()],
        "keywords": {"output_final_state": True},
        "positional": [],
        "returns": "output-and-state",
        "differentiate": True,
    }

    def unpack(returned: Any, returns: str) -> dict[str, Any]:
        return dict(zip(("output", "final_state"), returned, strict=True))

    answer = launches(kernel, request, unpack)
    assert (answer["message"], answer["gradients_message"]) == ("", "")
    places = [(x["file"], x["line"]) for x in answer["launches"]]
    sources = {(x["file"], x["line"]): x["name"] for x in answer["kernels"]}
    assert set(places) <= set(sources)
    repeated = [x["repeated"] for x in answer["launches"]]
    forward = repeated.index(True)
    assert places[:forward] == places[forward : 2 * forward]
    assert repeated == [False] * forward + [True] * forward + [False] * (len(repeated) - 2 * forward)
    assert max(x["bytes"] for x in answer["launches"][0]["arguments"].values() if "bytes" in x) == 2**33
