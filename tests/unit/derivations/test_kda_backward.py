"""The adjoint recurrence gives the gradients of the definition, for any sizes."""

import random
from fractions import Fraction
from typing import Any

import pytest

from derivations.kda._backward import backward
from verify.checkers import adjoint
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict
from verify.numbers.exact import Exact

NUMBERS = Exact()


def entries(source: random.Random, rows: int, columns: int, low: int = -4) -> list[list[str]]:
    return [
        [str(Fraction(source.randint(low, 4), source.randint(1, 3))) for _ in range(columns)]
        for _ in range(rows)
    ]


def texts(matrix: Any) -> list[list[str]]:
    return [[str(entry) for entry in row] for row in NUMBERS.to_lists(matrix)]


@pytest.mark.parametrize(
    ("tokens", "keys", "values"), [(1, 1, 1), (1, 3, 2), (2, 2, 1), (3, 1, 2), (4, 2, 3)]
)
def test_gradients_of_random_tokens_are_those_of_dual_numbers(tokens: int, keys: int, values: int) -> None:
    source = random.Random(tokens * 100 + keys * 10 + values)
    data: dict[str, Any] = {
        "queries": entries(source, tokens, keys),
        "keys": entries(source, tokens, keys),
        "values": entries(source, tokens, values),
        "decays": entries(source, tokens, keys, low=1),
        "strengths": entries(source, 1, tokens)[0],
        "initial": entries(source, keys, values),
        "outputs": entries(source, tokens, values),
        "final": entries(source, keys, values),
    }
    q, k, v, alpha = (
        NUMBERS.row_vectors(NUMBERS.matrix(data[name])) for name in ("queries", "keys", "values", "decays")
    )
    found = backward(
        NUMBERS,
        q,
        k,
        v,
        alpha,
        [NUMBERS.number(beta) for beta in data["strengths"]],
        state=NUMBERS.matrix(data["initial"]),
        outputs=NUMBERS.row_vectors(NUMBERS.matrix(data["outputs"])),
        final=NUMBERS.matrix(data["final"]),
    )
    fields = {"queries": "q", "keys": "k", "values": "v", "decays": "g"}
    data["gradients"] = {
        **{
            name: texts(NUMBERS.stack_rows([getattr(token, field) for token in found]))
            for name, field in fields.items()
        },
        "strengths": [str(token.beta) for token in found],
        "initial": texts(found[0].state),
    }
    check = adjoint.judge(Obligation("adjoint", "random tokens", "E", data))
    assert check.verdict is Verdict.PROVED, check.detail


def test_the_adjoint_goes_back_by_the_transposed_step() -> None:
    """With no query and a unit cotangent of the final state, S̄_0 is the transpose of the product of steps."""
    key, decay, strength = NUMBERS.matrix([[1], [2]]), NUMBERS.matrix([["1/2"], ["3"]]), NUMBERS.number("1/3")
    zero, none = NUMBERS.zeros(2, 1), NUMBERS.zeros(2, 2)
    found = backward(
        NUMBERS,
        [zero],
        [key],
        [zero],
        [decay],
        [strength],
        state=none,
        outputs=[zero],
        final=NUMBERS.eye(2),
    )
    erase = NUMBERS.sub(NUMBERS.eye(2), NUMBERS.scale(strength, NUMBERS.outer(key, key)))
    assert found[0].state == NUMBERS.scale_rows(decay, erase)
