"""Launches of Triton kernels followed through their source: where 32-bit offsets wrap, and where not."""

import textwrap
from typing import Any

import pytest

from verify.audit.properties.index_width.launch import Launch
from verify.audit.properties.index_width.program import Followed, follow
from verify.audit.properties.index_width.triton_source import Function, Source

HEAD = "def kernel(x, y, T, stride, K: tl.constexpr, BT: tl.constexpr):\n    i = tl.program_id(0)\n"
ROWS, WIDTH = 1 << 24, 256


def function(body: str, head: str = HEAD, name: str = "kernel", file: str = "file.py") -> Function:
    text = head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    return Function(Source(name, file, 10, text, {"LIMIT": 7}))


def tensor(name: str, elements: int, **more: Any) -> dict[str, Any]:
    own = {"before": 0, "after": elements, "dtype": "float32", "memory": hash(name), "bytes": 4 * elements}
    return own | {"values": None} | more


def seen(
    body: str, *others: Function, grid: tuple[int, ...] = (ROWS // 16,), head: str = HEAD, **changed: Any
) -> Followed:
    """What a kernel over 2^24 rows of 256 does, 16 rows a program."""
    own = function(body, head)
    size = ROWS * WIDTH
    given = {"x": tensor("x", size), "y": tensor("y", size), "T": ROWS, "stride": WIDTH, "K": WIDTH, "BT": 16}
    given |= changed
    arguments = {
        n: x if isinstance(x, dict) else {"value": x} for n, x in given.items() if n in own.parameters
    }
    followed = Followed()
    named: dict[str, list[Function]] = {}
    for other in (own, *others):
        named.setdefault(other.source.name, []).append(other)
    follow(Launch(own, grid, arguments), named, followed)
    return followed


ROW = "row = i * BT + tl.arange(0, BT)\n"


@pytest.mark.parametrize(
    "offset",
    [
        "row * stride",
        "row * K",
        "row[:, None] * stride + tl.arange(0, K)[None, :]",
        "(row * stride).to(tl.int64)",
        "tl.where(row < 3, 0, row) * stride",
        "tl.minimum(row, T - 1) * stride",
        "(T - 1) * stride",
        "tl.cdiv(T, 1) * 255",
        "(i + tl.num_programs(0) - 1) * BT * stride // 2",
    ],
)
def test_an_offset_past_31_bits_wraps(offset: str) -> None:
    found = seen(f"{ROW}z = tl.load(x + {offset})")
    assert found.wraps
    last = max(found.wraps, key=lambda wrap: wrap.exact)
    assert (last.exact - last.actual) % 2**31 == 0
    assert 2**31 <= last.exact < ROWS * WIDTH
    assert (last.file, last.line, last.tensor, last.store) == ("file.py", 13, "x", False)
    assert last.text.startswith("x + ")


@pytest.mark.parametrize(
    "offset",
    [
        "row.to(tl.int64) * stride",
        "row * stride.to(tl.int64)",
        "tl.cast(row, tl.int64) * K",
        "row",
        "row % 7 * stride",
        "row // 256 * stride",
        "(row * 2 - row) * 127",
        "LIMIT * stride",
    ],
)
def test_an_offset_that_fits_does_not(offset: str) -> None:
    assert not seen(f"{ROW}z = tl.load(x + {offset})").wraps


def test_what_the_tensor_does_not_have_is_not_a_wrong_address() -> None:
    """A lane past the end, which the mask hides or not, has no right address to miss."""
    body = f"{ROW}z = tl.load(x + row * stride, mask=row < 99)"
    assert not seen(body).wraps
    assert seen(body.replace("99", "T")).wraps
    assert not seen(f"{ROW}z = tl.load(x + row * stride)", x=tensor("x", 1 << 31)).wraps


def test_a_mask_that_depends_on_data_decides_nothing() -> None:
    assert not seen(f"{ROW}z = tl.load(x + row * stride, mask=tl.load(y + row) > 0)").wraps


def test_a_load_that_wraps_into_the_tensor_is_no_proof_but_a_store_is() -> None:
    """What is read there may go unused."""
    large = {"x": tensor("x", 1 << 40), "stride": 320}
    assert not seen("z = tl.load(x + (T - 1) * stride)", **large).wraps
    found = seen("tl.store(x + (T - 1) * stride, 0)", **large).wraps[0]
    assert found.store
    assert 0 < found.actual == found.exact - 2**32


def test_width_of_arguments() -> None:
    """Those that 32 bits do not hold are wide, and those declared to be."""
    body = "z = tl.load(x + stride * (T - 1))"
    assert seen(body).wraps
    assert not seen(body, T=2**31 + 5, stride=1).wraps
    assert not seen(body, head=HEAD.replace("stride,", "stride: tl.int64,")).wraps


def test_loops_reach_their_last_round() -> None:
    body = "for t in range(T):\n    z = tl.load(x + t * stride)"
    assert seen(body).wraps
    assert not seen(body.replace("t *", "t.to(tl.int64) *")).wraps
    assert not seen(body, T=9).wraps
    assert seen(body.replace("range(T)", "range(T - 1, -1, -1)")).wraps


def test_steps_of_a_loop_add_up() -> None:
    """A pointer has 64 bits and a number 32."""
    pointer = "p = x\nfor t in range(T):\n    z = tl.load(p)\n    p += stride"
    number = "n = 0\nfor t in range(T):\n    z = tl.load(x + n)\n    n += stride"
    assert not seen(pointer).wraps
    assert seen(number).wraps
    assert not seen(number.replace("n = 0", "n = i.to(tl.int64)")).wraps
    changing = number.replace("n += stride", "n += stride\n    stride = stride - t")
    assert not seen(changing).wraps
    assert seen(changing).unclear


def test_a_branch_on_data_is_left_alone() -> None:
    body = "if tl.load(y) > 0:\n    z = tl.load(x + (T - 1) * stride)"
    found = seen(body)
    assert not found.wraps
    assert ("file.py", 13) in found.unclear
    assert seen(body.replace("tl.load(y) > 0", "T > 3")).wraps
    assert not seen(body.replace("tl.load(y) > 0", "T < 3")).unclear
    after = seen("if tl.load(y) > 0:\n    return\nz = tl.load(x + (T - 1) * stride)")
    assert not after.wraps
    assert ("file.py", 14) in after.unclear


def test_numbers_in_memory_are_read_where_they_are_known() -> None:
    body = "z = tl.load(x + tl.load(y + 1) * stride)"
    assert not seen(body).wraps
    known = tensor("y", 2, values=[0, ROWS - 1], dtype="int32")
    assert seen(body, y=known).wraps
    assert not seen(body, y=known | {"dtype": "int64"}).wraps


def test_device_functions_are_followed() -> None:
    helper = function("return tl.load(p + row * n)", "def rows(p, row, n=2):\n", "rows")
    narrow = seen("z = rows(x, T - 1, stride)", helper)
    assert narrow.wraps[0].kernel == "rows"
    assert narrow.wraps[0].line == 11
    assert not seen("z = rows(x, (T - 1).to(tl.int64), stride)", helper).wraps
    assert not seen("z = rows(x, T - 1)", helper).wraps
    twice = [function("return 0", "def rows(p, row, n=2):\n", "rows", file) for file in ("a.py", "b.py")]
    assert seen("z = rows(x, T - 1, stride)", *twice).unclear


def test_blocks_count_in_64_bits_from_a_base_that_may_not() -> None:
    block = "p = tl.make_block_ptr({}, (T, K), (stride, 1), (T - BT, 0), (BT, K), (1, 0))\n"
    load = "z = tl.load(p, boundary_check=(0, 1))"
    assert not seen(block.format("x") + load).wraps
    assert seen(block.format("x + i * BT * stride") + load.replace("p,", "tl.advance(p, (BT - T, 0)),")).wraps
    none = block.format("x + i * BT * stride").replace("(T, K)", "(0, K)").replace("T - BT", "0")
    assert not seen(none + load).wraps
    assert seen(none + load.replace("(0, 1)", "(1,)")).wraps


def test_only_what_a_program_does_at_its_grid_counts() -> None:
    body = f"{ROW}z = tl.load(x + row * stride)"
    assert not seen(body, grid=(9,)).wraps
    assert not seen(body, grid=(0,)).wraps
    assert seen("z = tl.load(x + tl.program_id(1) * 16 * stride)", grid=(2, ROWS // 16)).wraps


def test_how_large_the_narrow_parts_are_is_known() -> None:
    found = seen(f"{ROW}z = tl.load(x + row.to(tl.int64) * stride + tl.arange(0, BT))")
    assert max(found.peaks.values()) == ROWS - 1
    assert not found.unclear


def test_what_cannot_be_followed_is_unclear() -> None:
    for body in (
        "z = tl.load(x + tl.arange(0, 3) + tl.arange(0, 4))",
        "while T > 3:\n    T = T // 2",
        "for t in tl.load(y):\n    z = tl.load(x + t * stride)",
        "with tl.async_task([0]):\n    z = tl.load(x + i * stride)",
    ):
        assert seen(body).unclear


REPORTED = """
first = (i // H * T * H + i % H) * K
z = tl.load(x + first + tl.arange(0, K))
"""
REPORTED_HEAD = "def kernel(x, T, H, K: tl.constexpr):\n    i = tl.program_id(0)\n"


@pytest.mark.parametrize(("tokens", "wraps"), [(17_476, False), (17_477, True)])
def test_the_onset_that_was_reported(tokens: int, wraps: bool) -> None:
    """fla#1080: 16 sequences of 64 heads of 128."""
    size = {"x": tensor("x", 16 * tokens * 64 * 128), "T": tokens, "H": 64, "K": 128}
    found = seen(REPORTED, grid=(1024,), head=REPORTED_HEAD, **size)
    assert bool(found.wraps) is wraps
    if wraps:
        last = max(found.wraps, key=lambda wrap: wrap.exact)
        assert last.exact == 2_147_581_824 + 127
        assert last.actual == -2_147_385_472 + 127


def test_a_stride_alone_is_enough() -> None:
    """flash-attention#2611: few elements, rows 9728 apart."""
    apart = tensor("x", 225_305 * 9_728)
    last = max(
        seen("z = tl.load(x + i * stride)", grid=(225_305,), x=apart, stride=9_728).wraps,
        key=lambda w: w.exact,
    )
    assert (last.exact, last.actual) == (225_304 * 9_728, 225_304 * 9_728 - 2**32)
    assert (last.exact, last.actual) == (2_191_757_312, -2_103_209_984)
