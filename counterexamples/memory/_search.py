"""The search behind memory.index-bound: two histories that a state of three bits merges."""

from typing import Any

from counterexamples.memory._alice_and_bob import Bits, confused
from counterexamples.memory.index_bound import PARITIES

TOKENS, WIDTH = 2, 2


def merged() -> list[dict[str, Any]]:
    """The first of the 16 histories of two tokens and two bits each that share the parities of the claim."""

    def state(bits: Bits) -> tuple[int, ...]:
        flat = [bit for row in bits for bit in row]
        return tuple(sum(x * y for x, y in zip(picks, flat, strict=True)) % 2 for picks in PARITIES)

    one, two, _, _ = confused(state, TOKENS, WIDTH)
    pair = [[list(row) for row in bits] for bits in (one, two)]
    return [{"bits": bits, "same_as": other} for bits, other in (pair, pair[::-1])]
