"""Layer files of every kind give the same exact arrays, and broken ones one sentence."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from safetensors.numpy import save_file

from verify.cli.refute.layer_file import load
from verify.model.errors import RequestError

ARRAYS = {
    "w_k": np.array([[1, 0.5, 0], [-0.25, 1, 0.5]], np.float32),
    "w_beta": np.array([1, 0.25, -0.5], np.float32),
    "A_log": np.array(0.125, np.float32),
}
"""Every entry is exact in bfloat16 and in float16."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that can and files that cannot be read."""
    np.savez(tmp_path / "doubles.npz", **{name: a.astype(np.float64) for name, a in ARRAYS.items()})
    save_file(ARRAYS, tmp_path / "singles.safetensors")
    halves = {name: a.astype(np.float16) for name, a in ARRAYS.items()}
    save_file(halves, tmp_path / "halves.safetensors")
    bfloats = {name: torch.tensor(a).bfloat16() for name, a in ARRAYS.items()}
    safetensors.torch.save_file(bfloats, tmp_path / "bfloats.safetensors")
    np.savez(tmp_path / "words.npz", w_v=np.array([["a", "b"]]))
    np.savez(tmp_path / "objects.npz", w_v=np.array([[None, 1]]))
    np.savez(tmp_path / "complex.npz", w_v=np.array([[1j]]))
    np.save(tmp_path / "single.npy", np.ones(2))
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    save_file({"w_v": np.array([[True, False]])}, tmp_path / "bool.safetensors")
    (tmp_path / "text.npz").write_text("hello", encoding="utf-8")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.safetensors").write_text("hello", encoding="utf-8")
    (tmp_path / "layer.pt").write_bytes(b"")
    (tmp_path / "folder.npz").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "name", ["doubles.npz", "singles.safetensors", "halves.safetensors", "bfloats.safetensors"]
)
def test_every_kind_holds_the_same_numbers(folder: Path, name: str) -> None:
    found = load(folder / name)
    assert set(found) == set(ARRAYS)
    for key, array in ARRAYS.items():
        assert found[key].shape == array.shape
        assert [Fraction(float(x)) for x in found[key].flat] == [Fraction(float(x)) for x in array.flat]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("words.npz", "w_v in .*words.npz has type <U1; give floats or integers"),
        ("complex.npz", "w_v in .*complex.npz has type complex128"),
        ("objects.npz", "is not an .npz file of plain arrays"),
        ("single.npz", "is not an .npz file of plain arrays"),
        ("text.npz", "is not an .npz file of plain arrays"),
        ("empty.npz", "is not an .npz file of plain arrays"),
        ("bool.safetensors", "w_v in .*bool.safetensors has type BOOL; known: F64, F32, F16"),
        ("text.safetensors", "is not a .safetensors file"),
        ("layer.pt", "is neither a .npz nor a .safetensors file"),
        ("missing.npz", "cannot be read: No such file"),
        ("missing.safetensors", "cannot be read: No such file"),
        ("folder.npz", "cannot be read"),
    ],
)
def test_a_broken_file_is_one_sentence(folder: Path, name: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        load(folder / name)


def test_a_file_with_a_flipped_bit_is_named(folder: Path) -> None:
    whole = bytearray((folder / "doubles.npz").read_bytes())
    whole[200] ^= 1
    (folder / "flipped.npz").write_bytes(whole)
    with pytest.raises(RequestError, match=r"flipped.npz is not an .npz file of plain arrays: Bad CRC"):
        load(folder / "flipped.npz")
