"""Keys of one length, pairwise nearly orthogonal: every inner product computed exactly.

Data: ``keys`` (n×K rationals), their stated ``count`` n and ``width`` K, and ``within`` ε: all squared
lengths must equal one number L > 0, and |k_i·k_j| <= ε·L for i ≠ j.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from verify.checkers.reading import Wrong, dot, matrix, natural, word
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "inner product checker"
KINDS = frozenset({"near-orthogonal"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when there are as many keys as stated and every pair is within the bound."""
    return word(NAME, obligation, _near_orthogonal)


def _near_orthogonal(data: Mapping[str, Any]) -> str:
    keys = matrix(data["keys"])
    if (len(keys), len(keys[0])) != (natural(data["count"]), natural(data["width"])):
        raise Wrong(f"{len(keys)} keys of width {len(keys[0])}, not {data['count']} of width {data['width']}")
    square = dot(keys[0], keys[0])
    if square <= 0 or any(dot(key, key) != square for key in keys):
        raise Wrong("the keys differ in length, or vanish")
    largest = max((abs(dot(one, other)) for one, other in combinations(keys, 2)), default=square * 0)
    if largest > rational(data["within"]) * square:
        raise Wrong(f"two keys have an inner product of {largest / square} of their squared length")
    return f"{len(keys)} keys, inner products at most {largest / square} of the squared length"
