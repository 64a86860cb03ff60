"""Two score matrices that agree wherever an algorithm looked, and whose attention outputs differ.

Data: ``first`` and ``second``, N×N scores, row i being query i's; ``values`` (N×V); ``read``, the list of the
pairs [query, key] that were read (counted from 0); ``pair``, the one pair where the scores differ; ``answer``
(N×V), what the algorithm returned on both; ``gap``, which the outputs of that row differ by at least.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import Interval, decimal, softmax_read
from verify.checkers.reading import Matrix, Wrong, matrix, natural, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "unread score"
KINDS = frozenset({"unread-score"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the inputs agree on all that was read and their outputs are ``gap`` apart.

    Then any one answer is off by half of that on one of the two; by how much this one is, the detail says.
    """
    return word(NAME, obligation, _unread)


def _unread(data: Mapping[str, Any]) -> str:
    first, second, values, answer = (matrix(data[name]) for name in ("first", "second", "values", "answer"))
    size = len(values)
    if any(len(scores) != size or len(scores[0]) != size for scores in (first, second)):
        raise Wrong(f"{size} values need {size}×{size} scores")
    if (len(answer), len(answer[0])) != (size, len(values[0])):
        raise Wrong(f"the answer must have the shape of the values, {size}×{len(values[0])}")
    if not isinstance(data["read"], list | tuple):
        raise IllFormed(f"{data['read']!r} is not a list of pairs")
    read = {_pair(item, size) for item in data["read"]}
    pair = _pair(data["pair"], size)
    if pair in read:
        raise Wrong(f"the pair {list(pair)} was read")
    _one_difference(first, second, pair)
    return (
        _outputs(first, second, values, answer, pair[0], rational(data["gap"])) + f", {len(read)} pairs read"
    )


def _pair(value: Any, size: int) -> tuple[int, int]:
    query, key = (natural(item) for item in value)
    if max(query, key) >= size:
        raise Wrong(f"the pair {[query, key]} is outside {size}×{size} scores")
    return query, key


def _one_difference(first: Matrix, second: Matrix, pair: tuple[int, int]) -> None:
    cells = [(i, j) for i in range(len(first)) for j in range(len(first))]
    differing = [cell for cell in cells if first[cell[0]][cell[1]] != second[cell[0]][cell[1]]]
    if differing != [pair]:
        raise Wrong(f"the scores differ at {differing[:4]}, not at {list(pair)} alone")


def _outputs(first: Matrix, second: Matrix, values: Matrix, answer: Matrix, row: int, gap: Fraction) -> str:
    if gap <= 0:
        raise Wrong(f"a gap of {gap} separates nothing")
    outputs = [softmax_read(scores[row], values) for scores in (first, second)]
    apart = max((one - other).magnitude for one, other in zip(*outputs, strict=True))
    if apart < gap:
        raise Wrong(f"the outputs of row {row} are only certainly {decimal(apart)} apart, not {gap}")
    off = max(_off(output, answer[row]) for output in outputs)
    return f"outputs at least {gap} apart, one answer to both off by {decimal(off)}"


def _off(output: Sequence[Interval], stated: Sequence[Fraction]) -> Fraction:
    """How far a stated row certainly is from an enclosed one (largest coordinate)."""
    pairs = zip(output, stated, strict=True)
    return max((max(exact.low - value, value - exact.high) for exact, value in pairs), default=Fraction(0))
