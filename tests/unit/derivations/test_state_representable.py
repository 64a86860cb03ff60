"""The decision whether a matrix is one KDA step, against steps multiplied out and against Z3."""

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from derivations.kda import _products, _step_evidence
from derivations.kda._represent import Impossible, Matrix, Step, represent
from derivations.kda._stretch import reduce, stretched
from verify.model.judges import ask
from verify.model.verdict import Verdict

Numbers = list[list[Fraction]]


def fractions(rows: list[list[str]]) -> Numbers:
    return [[Fraction(entry) for entry in row] for row in rows]


def multiplied(alpha: list[Fraction], beta: Fraction, k: list[Fraction]) -> Numbers:
    size, norm = range(len(k)), sum(x * x for x in k) or Fraction(1)
    return [[(int(i == j) - beta * k[i] * k[j] / norm) * alpha[j] for j in size] for i in size]


def chained(later: Numbers, first: Numbers) -> Numbers:
    return [
        [
            sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0))
            for column in zip(*first, strict=True)
        ]
        for row in later
    ]


def drawn(source: random.Random, size: int) -> Numbers:
    """A step within bounds, or one outside, or one with an entry changed."""
    key = [Fraction(source.choice([0, 1, 2, -1, 3])) for _ in range(size)]
    beta = Fraction(source.choice([-1, 0, 1, 2, 3, 4, 5]), 2)
    matrix = multiplied([Fraction(source.choice([-1, 0, 1, 2, 3, 4]), 4) for _ in key], beta, key)
    if source.random() < 0.5:
        matrix[source.randrange(size)][source.randrange(size)] *= source.choice([-1, 0, Fraction(1, 2)])
    return matrix


def word(matrix: Matrix, found: Step | Impossible, bounded: bool) -> Verdict:
    """What the independent checkers say of the answer."""
    if isinstance(found, Step):
        item = _step_evidence.product("step", matrix, (found,), bounded)
    else:
        item = _step_evidence.impossible("reason", matrix, found, bounded)
    (check,) = ask("verify.checkers", item)
    return check.verdict


def test_every_answer_is_confirmed_and_every_rule_occurs() -> None:
    source = random.Random(7)
    rules, irrational = set(), 0
    for size in (1, 2, 3, 4):
        for _ in range(300):
            matrix = drawn(source, size)
            for bounded in (True, False):
                found = represent(matrix, bounded)
                assert word(matrix, found, bounded) is Verdict.PROVED, (matrix, found)
                if isinstance(found, Impossible):
                    rules.add(found.rule)
                else:
                    irrational += bool(found.radicand)
    assert irrational
    named = "zero-entry two-decays mirror decay-range erase-sign long-column opposite-signs pair-cap pair-sum"
    assert rules >= {"stretch", *named.split()}


def test_every_step_is_recognised() -> None:
    source = random.Random(11)
    for _ in range(300):
        size = source.randint(1, 4)
        key = [Fraction(source.randint(-2, 3)) for _ in range(size)]
        alpha = [Fraction(source.randint(0, 4), 4) for _ in key]
        matrix = multiplied(alpha, Fraction(source.randint(0, 8), 4), key)
        assert isinstance(represent(matrix, bounded=True), Step)
        assert isinstance(represent(matrix), Step)


@pytest.mark.parametrize(("size", "count"), [(2, 40), (3, 12)])
@pytest.mark.parametrize("bounded", [True, False])
def test_the_decision_agrees_with_z3(size: int, count: int, bounded: bool) -> None:
    z3 = pytest.importorskip("z3")
    source = random.Random(size)
    for _ in range(count):
        matrix = drawn(source, size)
        solver = z3.SolverFor("QF_NRA")
        solver.set("timeout", 2000)
        beta, key, alpha = z3.Real("beta"), z3.Reals("k0 k1 k2")[:size], z3.Reals("a0 a1 a2")[:size]
        for i in range(size):
            for j in range(size):
                entry = z3.Q(matrix[i][j].numerator, matrix[i][j].denominator)
                solver.add((int(i == j) - beta * key[i] * key[j]) * alpha[j] == entry)
        if bounded:
            solver.add(beta >= 0, beta <= 2, sum(k * k for k in key) == 1)
            solver.add(*(a >= 0 for a in alpha), *(a <= 1 for a in alpha))
        answer = str(solver.check())
        wrong = "sat" if isinstance(represent(matrix, bounded), Impossible) else "unsat"
        assert answer != wrong, matrix


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([["1", "2"], ["0", "1"]], "M_2,1 = 0 means α_1 = 0"),
        ([["0", "1", "1"], ["1", "0", "1"], ["1", "1", "1"]], "force α_3 = "),
        ([["1", "1", "0"], ["1", "1", "1"], ["0", "1", "1"]], "M_3,1 = 0"),
    ],
)
def test_reasons_name_entries(matrix: list[list[str]], reason: str) -> None:
    found = represent(fractions(matrix))
    assert isinstance(found, Impossible)
    assert reason in found.reason


def test_a_lengthened_vector_is_found_exactly_when_there_is_one() -> None:
    source = random.Random(3)
    answers = set()
    for _ in range(200):
        size = source.randint(1, 4)
        matrix = [[Fraction(source.randint(-4, 4), 4 * size - 2) for _ in range(size)] for _ in range(size)]
        vector = stretched(matrix)
        item = (
            _step_evidence.contraction("squares", matrix, reduced)
            if isinstance(reduced := reduce(matrix), tuple)
            else _step_evidence.impossible(
                "", matrix, Impossible("stretch", {"vector": vector or reduced}, ""), True
            )
        )
        assert (vector is None) == isinstance(reduced, tuple)
        (check,) = ask("verify.checkers", item)
        assert check.verdict is Verdict.PROVED
        answers.add(vector is None)
    assert answers == {True, False}


def _rotation() -> Numbers:
    return fractions([["0", "1/2", "0"], ["0", "0", "1"], ["1/3", "0", "0"]])


def _two_steps() -> Numbers:
    first = multiplied(
        [Fraction(1, 2), Fraction(3, 4), Fraction(1)], Fraction(3, 4), list(map(Fraction, (1, 2, 0)))
    )
    return chained(multiplied([Fraction(1)] * 3, Fraction(1, 2), list(map(Fraction, (1, -1, 1)))), first)


@pytest.mark.parametrize(
    "build", [_rotation, lambda: [list(x) for x in zip(*_rotation(), strict=True)], _two_steps]
)
def test_products_that_exist_are_found(build: Callable[[], Numbers]) -> None:
    matrix = build()
    steps, _ = _products.search(matrix, 2)
    assert steps is not None
    assert len(steps) == 2
    (check,) = ask("verify.checkers", _step_evidence.product("product", matrix, steps, True))
    assert check.verdict is Verdict.PROVED


def test_no_product_is_found_where_none_exists() -> None:
    steps, tried = _products.search(fractions([["1", "1"], ["0", "1"]]), 3)
    assert steps is None
    assert "last steps" in tried


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_contraction_is_approached_in_twice_its_size(size: int) -> None:
    source = random.Random(size)
    matrix = [[Fraction(source.randint(-9, 9), 10 * size) for _ in range(size)] for _ in range(size)]
    steps = _products.approximate(matrix)
    assert len(steps) <= 2 * size
    within = _products.distance(matrix, steps)
    assert within <= Fraction(1, 10**35)
    (check,) = ask("verify.checkers", _step_evidence.product("near", matrix, steps, True, within))
    assert check.verdict is Verdict.PROVED
    (check,) = ask("verify.checkers", _step_evidence.product("nearer", matrix, steps, True, within / 10**20))
    assert check.verdict is Verdict.REFUTED
