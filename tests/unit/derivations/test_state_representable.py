"""The decision whether a matrix is one KDA step, against steps multiplied out and against Z3."""

import random
from fractions import Fraction

import pytest

from derivations.kda._represent import Impossible, Matrix, Quadratic, Step, represent
from derivations.kda.representable import _none


def multiplied(
    alpha: list[Fraction], beta: Fraction, k: list[Fraction], norm: Fraction = Fraction(1)
) -> Matrix:
    size = range(len(k))
    return [[(int(i == j) - beta * k[i] * k[j] / norm) * alpha[j] for j in size] for i in size]


def test_every_step_is_recognised() -> None:
    source = random.Random(7)
    for _ in range(400):
        size = source.randint(1, 4)

        def number() -> Fraction:
            return Fraction(source.choice([0, 0, 1, 2, -1, 3]), source.choice([1, 2, 3]))

        matrix = multiplied([number() for _ in range(size)], number(), [number() for _ in range(size)])
        found = represent(matrix)
        assert isinstance(found, Step)
        assert sum(x * x for x in found.direction) == found.norm_squared
        again = multiplied(list(found.alpha), found.beta, list(found.direction), found.norm_squared)
        assert again == matrix


@pytest.mark.parametrize(("size", "count"), [(2, 40), (3, 60)])
def test_the_decision_agrees_with_z3(size: int, count: int) -> None:
    z3 = pytest.importorskip("z3")
    source = random.Random(size)
    words = set()
    for _ in range(count):
        text = [[str(source.choice([0, 0, 1, -1, 2])) for _ in range(size)] for _ in range(size)]
        solver = z3.SolverFor("QF_NRA")
        solver.from_string(_none(text).data["smtlib"])
        found = represent([[Fraction(entry) for entry in row] for row in text])
        assert str(solver.check()) == ("unsat" if isinstance(found, Impossible) else "sat"), text
        words.add(type(found).__name__)
    assert words == {"Step", "Quadratic", "Impossible"} or size == 3


def test_an_irrational_decay_is_left_as_its_quadratic() -> None:
    found = represent([[Fraction(1), Fraction(2)], [Fraction(-1), Fraction(3)]])
    assert isinstance(found, Quadratic)
    assert found.linear**2 - 4 * found.constant > 0


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[1, 2], [0, 1]], "off the diagonal vanish"),
        ([[0, 1, 1], [1, 0, 1], [1, 1, 1]], "entry (2, 2) would be"),
        ([[1, 1, 0], [1, 1, 1], [0, 1, 1]], "disagree"),
    ],
)
def test_reasons_name_entries(matrix: list[list[int]], reason: str) -> None:
    found = represent([[Fraction(entry) for entry in row] for row in matrix])
    assert isinstance(found, Impossible)
    assert reason in found.reason
