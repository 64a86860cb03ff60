"""Float formats travel bit by bit."""

import numpy as np
import pytest

from verify.audit.subject import rawbits


def patterns(dtype: str) -> tuple[bytes, int]:
    """All bit patterns of a 16-bit format."""
    return np.arange(2**16, dtype="<u2").tobytes(), 2**16


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_16_bit_pattern_that_is_a_number_comes_back_unchanged(dtype: str) -> None:
    raw, count = patterns(dtype)
    values = rawbits.decode(raw, dtype, (count,))
    numbers = ~np.isnan(values)
    assert numbers.sum() == {"bfloat16": 2**16 - 2 * 127, "float16": 2**16 - 2 * 1023}[dtype]
    bits = np.frombuffer(rawbits.encode(values[numbers], dtype), "<u2")
    assert np.array_equal(bits, np.frombuffer(raw, "<u2")[numbers])


def test_bfloat16_of_known_bits() -> None:
    values = rawbits.decode(bytes.fromhex("803f 00c0 0100 0080 807f"), "bfloat16", (5,))
    assert values.tolist() == [1.0, -2.0, 2.0**-133, 0.0, np.inf]
    assert np.signbit(values[3])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bfloat16", 1 + 2**-8),
        ("bfloat16", 1 + 2**-30),
        ("bfloat16", 1e39),
        ("float16", 65520.0),
        ("float32", 1 + 2**-24),
        ("float32", 2.0**-150),
    ],
)
def test_a_value_outside_the_format_is_refused(dtype: str, value: float) -> None:
    with pytest.raises(ValueError, match=dtype):
        rawbits.encode(np.array([1.0, value]), dtype)


@pytest.mark.parametrize("dtype", rawbits.FORMATS)
def test_strided_and_empty_arrays(dtype: str) -> None:
    array = np.arange(12.0).reshape(3, 4).T
    assert np.array_equal(rawbits.decode(rawbits.encode(array, dtype), dtype, (4, 3)), array)
    assert rawbits.decode(rawbits.encode(np.zeros((2, 0)), dtype), dtype, (2, 0)).shape == (2, 0)
