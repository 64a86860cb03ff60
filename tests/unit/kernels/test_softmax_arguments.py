"""What softmax attention says about wrong arguments: one sentence with the argument and its value."""

import pytest
import torch

from kernels.softmax.recurrent import recurrent_softmax
from kernels.softmax.reference import reference_softmax
from kernels.softmax.tiled import tiled_softmax

T, S = 3, 5
WRONG = {
    "q must have the 4 dimensions [B, T, H, K], but its shape is [3, 4].": {"q": torch.zeros(3, 4)},
    "v must have the 4 dimensions [B, S, HKV, V], but its shape is [5].": {"v": torch.zeros(5)},
    "q must have at least one head and one key channel, but its shape is [1, 3, 4, 0].": {
        "q": torch.zeros(1, T, 4, 0)
    },
    "q must have a multiple of k's 2 heads, but it has 3.": {"q": torch.zeros(1, T, 3, 6)},
    "k must have shape [1, 5, 2, 6], but its shape is [1, 5, 2, 7].": {"k": torch.zeros(1, S, 2, 7)},
    "v must have shape [1, 5, 2, 3], but its shape is [1, 4, 2, 3].": {"v": torch.zeros(1, 4, 2, 3)},
    "g must have shape [1, 5, 4], but its shape is [1, 5, 2].": {"g": torch.zeros(1, S, 2)},
    "slopes must have shape [4], but its shape is [2].": {"slopes": torch.zeros(2)},
    "sink must have shape [4] or [4, n], n >= 1, but its shape is [4, 0].": {"sink": torch.zeros(4, 0)},
    "q must have a real floating-point dtype, but its dtype is torch.int64.": {
        "q": torch.zeros(1, T, 4, 6, dtype=torch.int64)
    },
    "k must be torch.float32 when q is torch.float32, but its dtype is torch.float64.": {
        "k": torch.zeros(1, S, 2, 6, dtype=torch.float64)
    },
    "g must be torch.float32 when q is torch.float32, but its dtype is torch.float16.": {
        "g": torch.zeros(1, S, 4, dtype=torch.float16)
    },
    "v must be on q's device cpu, but it is on meta.": {"v": torch.zeros(1, S, 2, 3, device="meta")},
    "scale must be a finite number, but it is inf.": {"scale": float("inf")},
    "window must be at least 1, but it is 0.": {"window": 0},
    "g must be a natural-log decay of at most 0, but its largest entry is 0.5.": {
        "g": torch.full((1, S, 4), 0.5)
    },
    "slopes must be finite and at least 0, but they are [0.0, 1.0, -1.0, 0.0].": {
        "slopes": torch.tensor([0.0, 1.0, -1.0, 0.0])
    },
    "cu_seqlens_k must be given when k has 5 tokens and q has 3.": {"cu_seqlens": torch.tensor([0, 3])},
    "cu_seqlens_k needs cu_seqlens, but cu_seqlens is None.": {"cu_seqlens_k": torch.tensor([0, 5])},
    "cu_seqlens must be an int32 or int64 tensor [N + 1] with N >= 1, but it is torch.int64 of shape [1].": {
        "cu_seqlens": torch.tensor([3])
    },
    "cu_seqlens must run from 0 to 3, but it runs from 0 to 2.": {
        "cu_seqlens": torch.tensor([0, 2]),
        "cu_seqlens_k": torch.tensor([0, 5]),
    },
    "cu_seqlens_k must not decrease, but 3 follows 4.": {
        "cu_seqlens": torch.tensor([0, 1, 2, 3]),
        "cu_seqlens_k": torch.tensor([0, 4, 3, 5]),
    },
    "cu_seqlens_k must have cu_seqlens' 2 entries, but it has 3.": {
        "cu_seqlens": torch.tensor([0, 3]),
        "cu_seqlens_k": torch.tensor([0, 3, 5]),
    },
    "v must be finite, but it contains nan.": {"v": torch.full((1, S, 2, 3), torch.nan), "check": True},
}


@pytest.mark.parametrize("form", [reference_softmax, recurrent_softmax, tiled_softmax])
@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_named(form, message):
    right = {"q": torch.zeros(1, T, 4, 6), "k": torch.zeros(1, S, 2, 6), "v": torch.zeros(1, S, 2, 3)}
    form(**right)
    with pytest.raises(ValueError, match=r"must|needs") as raised:
        form(**{**right, **WRONG[message]})
    assert str(raised.value) == message


def test_a_decay_needs_a_direction_and_a_packing_one_batch():
    q, k, v, g = (torch.zeros(2, 3, 1, 4) for _ in range(3)), None, None, torch.zeros(2, 3, 1)
    q, k, v = q
    with pytest.raises(ValueError, match="g must be None unless causal is True"):
        tiled_softmax(q, k, v, g, causal=False)
    with pytest.raises(ValueError, match="cu_seqlens needs a batch of 1, but q has a batch of 2"):
        tiled_softmax(q, k, v, cu_seqlens=torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="tile_size must be at least 1, but it is 0"):
        tiled_softmax(q, k, v, tile_size=0)
