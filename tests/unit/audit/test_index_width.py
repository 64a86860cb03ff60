"""Reading Triton source: 32-bit flat offsets are reported with their lines, 64-bit ones are not."""

import textwrap

import pytest

from verify.audit.properties.index_width.verdict import Source, risks

HEAD = "def kernel(x, y, offsets, T, H, stride, K: tl.constexpr, BT: tl.constexpr):\n"


def source(body: str, head: str = HEAD, name: str = "kernel", line: int = 10) -> Source:
    return Source(name, "file.py", line, head + textwrap.indent(textwrap.dedent(body), "    "))


def lines(*sources: Source) -> list[tuple[int, str]]:
    return [(risk.line, risk.text) for risk in risks(sources)]


@pytest.mark.parametrize(
    "offset",
    [
        "pid * stride",
        "pid * T * K",
        "(pid * BT + tl.arange(0, BT)) * K",
        "(pid // H * T + 3) * H * K",
        "rows[:, None] * stride + tl.arange(0, K)[None, :]",
        "tl.maximum(rows, 0) * stride",
        "(rows * K if T > 3 else rows)",
        "(pid.to(tl.int64) + pid * stride)",
        "(pid * stride).to(tl.int64)",
    ],
)
def test_narrow_flat_offsets_are_at_risk(offset: str) -> None:
    body = f"pid = tl.program_id(0)\nrows = pid * BT + tl.arange(0, BT)\nz = tl.load(x + {offset})"
    found = lines(source(body))
    assert [line for line, _ in found] == [13]
    assert found[0][1].startswith("x + ")


@pytest.mark.parametrize(
    "offset",
    [
        "wide * stride",
        "pid.to(tl.int64) * T * K",
        "tl.cast(pid, tl.int64) * T * K",
        "rows",
        "pid * BT + tl.arange(0, BT)",
        "tl.arange(0, K)[:, None] * K + tl.arange(0, K)[None, :]",
        "pid % H",
        "first * T * K",
        "tl.load(offsets + pid) * stride",
    ],
)
def test_wide_offsets_and_row_numbers_are_not(offset: str) -> None:
    body = f"""
    pid = tl.program_id(0)
    wide = tl.program_id(1).to(tl.int64)
    first = 0
    rows = pid * BT + tl.arange(0, BT)
    tl.store(y + {offset}, 0.0)
    """
    assert lines(source(body)) == []


def test_a_pointer_moved_in_steps_is_followed() -> None:
    body = "p = x + tl.program_id(0) * stride\np += tl.program_id(1) * H * K\nz = tl.load(p)"
    assert [line for line, _ in lines(source(body))] == [11, 12]


def test_widening_a_name_later_helps_from_there_on() -> None:
    body = (
        "i = tl.program_id(0)\na = tl.load(x + i * stride)\ni = i.to(tl.int64)\nb = tl.load(x + i * stride)"
    )
    assert [line for line, _ in lines(source(body))] == [12]


def test_one_narrow_branch_is_enough() -> None:
    body = """
    i = tl.program_id(0).to(tl.int64)
    if K > 3:
        j = i
    else:
        j = tl.program_id(1)
    z = tl.load(x + j * stride)
    """
    assert [line for line, _ in lines(source(body))] == [17]


def test_loop_counters_are_as_wide_as_their_ends() -> None:
    narrow = "for t in range(T):\n    z = tl.load(x + t * stride)"
    wide = "n = T.to(tl.int64)\nfor t in range(0, n):\n    z = tl.load(x + t * stride)"
    assert [line for line, _ in lines(source(narrow))] == [12]
    assert lines(source(wide)) == []


def test_device_functions_get_the_widths_of_their_callers() -> None:
    helper = source("return tl.load(p + row * n)", "def rows(p, row, n):\n", "rows", 50)
    wide = source("z = rows(x, tl.program_id(0).to(tl.int64), stride)")
    narrow = source("z = rows(x, tl.program_id(0), stride)")
    assert lines(helper, wide) == []
    assert [line for line, _ in lines(helper, narrow)] == [51]
    assert [line for line, _ in lines(helper, wide, narrow)] == [51]


def test_decorators_count_as_lines() -> None:
    body = "z = tl.load(x + tl.program_id(0) * stride)"
    assert [line for line, _ in lines(source(body, "@triton.jit\n" + HEAD))] == [12]


def test_block_pointers_have_their_base_read() -> None:
    body = "p = tl.make_block_ptr(x + tl.program_id(0) * T * K, (T, K), (K, 1), (0, 0), (BT, K), (1, 0))"
    assert len(lines(source(body))) == 1
