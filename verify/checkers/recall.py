"""Bits read back from softmax attention outputs: above ½ is a 1, below ½ is a 0.

Data: ``keys``, ``queries`` (n×K rationals) and ``bits`` (n×V of 0 and 1, the values). The keys differ, and
query i is key i times one positive factor for all. It reads all n tokens with weights ∝ exp(query·key), and
each coordinate of its output must certainly lie on the side of ½ on which bit (i, c) is. Optionally, and
together, ``parities`` (rows of n·V zeros and ones: a state of so many bits, each the parity of the history's
bits that its row picks) and ``same_as``, another history with that state.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import decimal, softmax_read
from verify.checkers.reading import Matrix, Wrong, dot, matrix, word
from verify.model.evidence import Check, Obligation

NAME = "recall checker"
KINDS = frozenset({"recall"})
HALF = Fraction(1, 2)


def judge(obligation: Obligation) -> Check:
    """``proved`` when every bit is read back from the enclosed outputs."""
    return word(NAME, obligation, _recall)


def _recall(data: Mapping[str, Any]) -> str:
    keys, queries, bits = (matrix(data[name]) for name in ("keys", "queries", "bits"))
    if not len(keys) == len(queries) == len(bits) or any(bit not in (0, 1) for row in bits for bit in row):
        raise Wrong("there must be one key, one query and one row of bits 0 or 1 per token")
    _addressed(keys, queries)
    if "parities" in data or "same_as" in data:
        _one_state(bits, matrix(data["same_as"]), matrix(data["parities"]))
    margin = HALF
    for place, (query, row) in enumerate(zip(queries, bits, strict=True)):
        output = softmax_read([dot(query, key) for key in keys], bits)
        for column, (found, bit) in enumerate(zip(output, row, strict=True)):
            room = found.low - HALF if bit else HALF - found.high
            if room <= 0:
                raise Wrong(f"bit ({place}, {column}) is {bit}, but the output is in {found}")
            margin = min(margin, room)
    return f"{len(bits)}×{len(bits[0])} bits read back, every output at least {decimal(margin)} off ½"


def _addressed(keys: Matrix, queries: Matrix) -> None:
    """Demand that token i is asked for by its own key, up to one positive factor."""
    if len(set(map(tuple, keys))) != len(keys):
        raise Wrong("two tokens have the same key")
    pairs = zip((x for key in keys for x in key), (x for query in queries for x in query), strict=True)
    factor = next((asked / entry for entry, asked in pairs if entry), Fraction(0))
    if factor <= 0 or queries != [[factor * entry for entry in key] for key in keys]:
        raise Wrong("the queries are not the keys times one positive factor")


def _one_state(bits: Matrix, other: Matrix, parities: Matrix) -> None:
    one, two = ([bit for row in history for bit in row] for history in (bits, other))
    if len(other) != len(bits) or len(two) != len(one):
        raise Wrong("the two histories differ in shape")
    if one == two or any(bit not in (0, 1) for bit in two):
        raise Wrong("the other history is the same one, or not made of bits")
    if any(pick not in (0, 1) for picks in parities for pick in picks):
        raise Wrong("a parity picks bits by 0 or 1")
    for place, picks in enumerate(parities):
        if dot(picks, one) % 2 != dot(picks, two) % 2:
            raise Wrong(f"parity {place} tells the two histories apart")
