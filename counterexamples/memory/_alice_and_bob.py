"""Alice and Bob: bits stored as values, read back from exact attention; and what a small state loses.

Alice has n×d bits. Token i carries row i of them as its value under address key i. Whoever can answer
attention queries about this history answers every INDEX question: the query gain·key_i puts more than half
of the softmax weight on token i. So a state with fewer than 2^(nd) values cannot answer them all.
"""

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from derivations.softmax.definition import attend
from verify.model.errors import RequestError

Bits = tuple[tuple[int, ...], ...]


def address_keys(n: int) -> list[list[int]]:
    """n orthogonal keys of entries ±1: rows of the smallest Hadamard matrix of Sylvester's that has n."""
    rows = [[1]]
    while len(rows) < n:
        rows = [[*row, *(sign * x for x in row)] for sign in (1, -1) for row in rows]
    return rows[:n]


def gain(n: int) -> Fraction:
    """A gain with e^{gain·K} > n − 1 for keys of squared length K, since e > 2."""
    return Fraction(n.bit_length(), len(address_keys(n)[0]))


def spell(text: str) -> Bits:
    """One row of eight bits per character, the highest bit first.

    Raises:
        RequestError: a character needs more than eight bits.
    """
    if any(ord(letter) > 255 for letter in text):
        raise RequestError(f"{text!r} holds a character beyond eight bits; use Latin-1 text")
    return tuple(tuple(ord(letter) >> place & 1 for place in range(7, -1, -1)) for letter in text)


@dataclass(frozen=True)
class Bob:
    """He sees the history through attention outputs only.

    Attributes:
        attention: from a query (K numbers) to d enclosures of the exact attention output.
        keys: the address keys, which he and Alice agreed on.
    """

    attention: Callable[[Sequence[Fraction]], Sequence[Any]]
    keys: Sequence[Sequence[int]]

    def row(self, i: int) -> tuple[int, ...]:
        """The bits of token i.

        Raises:
            RequestError: an output is too close to ½ to say.
        """
        strength = gain(len(self.keys))
        outputs = self.attention([strength * x for x in self.keys[i]])
        if any(not (2 * x > 1 or 2 * x < 1) for x in outputs):
            raise RequestError(f"an output for token {i} is not certainly on one side of 1/2")
        return tuple(int(2 * x > 1) for x in outputs)


def alice(bits: Bits, precision: int = 128) -> Callable[[Sequence[Fraction]], Sequence[Any]]:
    """Softmax attention over Alice's history, in balls: what Bob may ask."""
    from verify.numbers.ball import Ball

    balls = Ball(precision)

    def column(row: Sequence[Fraction | int]) -> Any:
        return balls.matrix([[Fraction(x)] for x in row])

    keys = [column(row) for row in address_keys(len(bits))]
    values = [column(row) for row in bits]

    def attention(query: Sequence[Fraction]) -> Sequence[Any]:
        entries: Sequence[Any] = attend(balls, column(query), keys, values, scale=balls.number(1)).entries()
        return entries

    return attention


def confused(compress: Callable[[Bits], Hashable], n: int, d: int) -> tuple[Bits, Bits, int, int]:
    """Two histories with one state, and a token and coordinate in which they differ.

    Tries all 2^(nd) histories; pigeonhole promises a pair as soon as there are fewer states.

    Raises:
        RequestError: all states differ.
    """
    seen: dict[Hashable, Bits] = {}
    for flat in itertools.product((0, 1), repeat=n * d):
        bits = tuple(flat[i * d : (i + 1) * d] for i in range(n))
        other = seen.setdefault(compress(bits), bits)
        if other != bits:
            i, c = next((i, c) for i in range(n) for c in range(d) if bits[i][c] != other[i][c])
            return other, bits, i, c
    raise RequestError(f"all 2^{n * d} histories have different states: nothing is lost")
