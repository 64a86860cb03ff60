"""The chunkwise gradients are those of the adjoint recurrence, for any sizes and any cut."""

import random
from fractions import Fraction
from typing import Any

import pytest

from derivations.chunk._backward import Chunk
from derivations.kda._backward import backward
from verify.numbers.exact import Exact

NUMBERS = Exact()


def rows(source: random.Random, height: int, width: int, low: int = -4) -> Any:
    return NUMBERS.matrix(
        [
            [Fraction(source.randint(low, 4), source.randint(1, 3)) for _ in range(width)]
            for _ in range(height)
        ]
    )


@pytest.mark.parametrize(("size", "keys", "values"), [(1, 1, 1), (2, 3, 1), (3, 2, 2), (5, 1, 3), (6, 3, 2)])
def test_one_chunk_has_the_gradients_of_its_tokens(size: int, keys: int, values: int) -> None:
    source = random.Random(size * 100 + keys * 10 + values)
    inputs = {
        "queries": rows(source, size, keys),
        "keys": rows(source, size, keys),
        "values": rows(source, size, values),
        "decays": rows(source, size, keys, low=1),
    }
    beta = [NUMBERS.entry(rows(source, 1, 1), 0, 0) for _ in range(size)]
    state, outputs, final = (
        rows(source, *shape) for shape in ((keys, values), (size, values), (keys, values))
    )
    found = Chunk(NUMBERS, inputs, beta, state).backward(outputs, final)
    q, k, v, alpha = (NUMBERS.row_vectors(inputs[name]) for name in ("queries", "keys", "values", "decays"))
    wanted = backward(
        NUMBERS, q, k, v, alpha, beta, state=state, outputs=NUMBERS.row_vectors(outputs), final=final
    )
    for name, field in {"queries": "q", "keys": "k", "values": "v", "decays": "g"}.items():
        stacked = NUMBERS.stack_rows([getattr(token, field) for token in wanted])
        assert found[name] == NUMBERS.to_lists(stacked), name
    assert found["strengths"] == [token.beta for token in wanted]
    assert found["initial"] == wanted[0].state
