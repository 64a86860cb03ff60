"""The chunkwise definition run on literal tokens in exact rationals, as data a checker can replay."""

from typing import Any

from derivations.chunk import definition as chunk
from verify.model.evidence import Obligation

KEYS = ((1, 2), (-1, 1), (0, 3), (2, -1), (1, 1), (-2, 1), (3, 0))
VALUES = ((2, 0), (1, -1), (0, 3), (-1, 2), (4, 1), (1, 0), (-2, 5))
QUERIES = ((1, 0), (2, 1), (-1, 3), (0, 1), (1, -2), (3, 1), (1, 1))
INITIAL = ((1, -2), (3, 1))
STRENGTHS = ("1/2", "1", "2", "0", "1/3", "-1", "3/4")
DECAYS = (
    ("1/2", "1"),
    ("1/3", "2/3"),
    ("0", "1/2"),
    ("1", "1"),
    ("3/4", "0"),
    ("1/5", "1/2"),
    ("2/3", "1/7"),
)
ONES = (("1", "1"),) * len(KEYS)
GATES = tuple((row[0], row[0]) for row in DECAYS)


def in_numbers(name: str, decays: tuple[tuple[str, str], ...], erases: bool, lag: int = 0) -> Obligation:
    """The definition's chunkwise results at every chunk size, for the checker to compare with the recurrence.

    With ``lag`` the definition is given the decays of other tokens than the checker (a fault, for a mutant).
    """
    from verify.numbers.exact import Exact

    numbers = Exact()

    def tokens(rows: Any) -> list[Any]:
        return numbers.row_vectors(numbers.matrix(rows))

    def texts(matrix: Any) -> list[list[str]]:
        return [[str(entry) for entry in row] for row in numbers.to_lists(matrix)]

    shifted = decays[lag:] + decays[:lag]
    strengths = [numbers.number(beta_t) for beta_t in STRENGTHS] if erases else None
    chunks = []
    for size in range(1, len(KEYS) + 2):
        outputs, final = chunk.chunkwise(
            numbers,
            tokens(QUERIES),
            tokens(KEYS),
            tokens(VALUES),
            tokens(shifted),
            strengths,
            scale=numbers.number(1),
            state=numbers.matrix(INITIAL),
            chunk_size=size,
        )
        chunks.append({"size": size, "outputs": texts(numbers.stack_rows(outputs)), "final": texts(final)})
    data = {
        "queries": QUERIES,
        "keys": KEYS,
        "values": VALUES,
        "initial": INITIAL,
        "decays": decays,
        "strengths": STRENGTHS,
        "erases": erases,
        "chunks": chunks,
    }
    label = f"{name}: 7 tokens in chunks of 1 to 8 against the recurrence, in exact numbers"
    return Obligation("chunk-agreement", label, "E", data)
