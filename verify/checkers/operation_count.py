"""Re-check multiplication counts of chunked linear attention by doing the work, one product at a time.

Kind ``operation-count``: ``tokens``, ``chunk`` (dividing tokens) and ``width``, with the stated numbers of
multiplications on the ``state``, on ``scores`` and values inside chunks, the same under a ``causal`` mask,
and of scores ``kept`` at a time.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.reading import Wrong, natural, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "operation counter"
KINDS = frozenset({"operation-count"})
_LIMIT = 64


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated count is the counted one."""
    return word(NAME, obligation, _check)


def _check(data: Mapping[str, Any]) -> str:
    tokens, chunk, width = (natural(data[name]) for name in ("tokens", "chunk", "width"))
    if not 1 <= chunk <= tokens <= _LIMIT or not 1 <= width <= _LIMIT or tokens % chunk:
        raise IllFormed(
            f"{tokens} tokens in chunks of {chunk}, width {width}: not a size this checker counts"
        )
    counted = _count(tokens, chunk, width)
    for name, number in counted.items():
        if natural(data[name]) != number:
            raise Wrong(f"{name}: {number} multiplications were counted, {data[name]} are stated")
    return f"{sum(counted.values()) - counted['kept']} multiplications done one by one"


def _count(tokens: int, chunk: int, width: int) -> dict[str, int]:
    """Multiplications of T tokens, all operands being 1, so that each product is one step."""
    counted = {"state": 0, "scores": 0, "causal": 0, "kept": 0}
    for _ in range(0, tokens, chunk):
        kept = 0
        for row in range(chunk):
            # Reading the state with the query of this row, and writing its key times its value.
            counted["state"] += sum(1 for _ in range(width) for _ in range(width))
            counted["state"] += sum(1 for _ in range(width) for _ in range(width))
            for column in range(chunk):
                score_and_value = sum(1 for _ in range(width)) + sum(1 for _ in range(width))
                counted["scores"] += score_and_value
                counted["causal"] += score_and_value if column <= row else 0
                kept += 1
        counted["kept"] = max(counted["kept"], kept)
    return counted
