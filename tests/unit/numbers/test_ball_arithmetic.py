"""Balls: comparisons that claim only what is certain, and a precision that never leaks."""

import random
from fractions import Fraction

import flint
import pytest

from verify.model.errors import RequestError
from verify.numbers.ball import Ball, certainly_equal, certainly_less, contains, contains_rational, overlaps
from verify.numbers.exact import Exact


def test_floats_are_exact_and_fractions_enclosed():
    numbers = Ball(20)
    assert numbers.number(0.1).is_exact()
    assert numbers.number(0.1).fmpq() == flint.fmpq(*(0.1).as_integer_ratio())
    third = numbers.number("1/3")
    assert not third.is_exact()
    assert contains_rational(third, flint.fmpq(1, 3))
    assert not contains_rational(third, flint.fmpq(1, 3) + flint.fmpq(1, 2**18))
    assert not contains_rational(flint.arb(0.1), flint.fmpq(1, 10))


def test_precision_is_used_and_restored():
    before = flint.ctx.prec
    coarse, fine = (Ball(bits).number("1/3").rel_accuracy_bits() for bits in (30, 300))
    assert 28 <= coarse <= 32
    assert fine >= 298
    assert flint.ctx.prec == before
    with pytest.raises(RequestError):
        Ball(300).solve(Ball(300).zeros(2, 2), Ball(300).eye(2))
    assert flint.ctx.prec == before


@pytest.mark.parametrize("operation", ["add", "sub", "matmul", "outer", "scale_rows"])
def test_operations_work_at_the_given_precision(operation):
    numbers = Ball(200)
    column = numbers.matrix([["1/3"]])
    result = numbers.entry(getattr(numbers, operation)(column, numbers.matrix([["1/7"]])), 0, 0)
    assert result.rel_accuracy_bits() >= 190


@pytest.mark.parametrize("operation", ["exp", "log", "sqrt", "reciprocal"])
def test_functions_work_at_the_given_precision(operation):
    numbers = Ball(200)
    assert getattr(numbers, operation)(numbers.number(3)).rel_accuracy_bits() >= 195
    assert numbers.entry(numbers.exp_entries(numbers.eye(1)), 0, 0).rel_accuracy_bits() >= 195
    assert (
        numbers.entry(numbers.scale(numbers.number(3), numbers.matrix([["1/7"]])), 0, 0).rel_accuracy_bits()
        >= 190
    )
    assert (
        numbers.entry(numbers.solve(numbers.matrix([[7]]), numbers.eye(1)), 0, 0).rel_accuracy_bits() >= 190
    )


def test_a_random_chain_of_operations_contains_the_exact_result():
    """At 20 bits a wrong radius has nowhere to hide."""
    exact, ball = Exact(), Ball(20)
    for seed in range(50):
        rng = random.Random(seed)
        rows = [[Fraction(rng.randint(-9, 9), rng.randint(1, 9)) for _ in range(3)] for _ in range(3)]
        x, y = exact.matrix(rows), ball.matrix(rows)
        for _ in range(6):
            operation = rng.choice(["add", "sub", "matmul"])
            x, y = (getattr(n, operation)(m, n.transpose(m)) for n, m in ((exact, x), (ball, y)))
            assert contains(y, x)
        assert not contains(y, exact.add(x, exact.matrix([[10**30] * 3] * 3)))


def test_comparisons_claim_only_what_is_certain():
    zero_to_two, one_to_three, four = flint.arb(1, 1), flint.arb(2, 1), flint.arb(4)
    assert certainly_less(zero_to_two, four)
    assert not certainly_less(zero_to_two, one_to_three)
    assert not certainly_less(four, four)
    assert certainly_equal(four, flint.arb(4))
    assert not certainly_equal(zero_to_two, zero_to_two)
    wide, near, far = (flint.arb_mat([[x]]) for x in (zero_to_two, one_to_three, four))
    assert overlaps(wide, near)
    assert not overlaps(wide, far)
    assert contains(wide, Exact().matrix([["1/3"]]))
    assert not contains(wide, far)
    assert not contains(wide, near)


def test_uncertain_signs_are_refused():
    numbers = Ball()
    for operation in ("log", "sqrt", "reciprocal"):
        with pytest.raises(RequestError, match="raise the precision"):
            getattr(numbers, operation)(flint.arb(0, 1))


@pytest.mark.parametrize("precision", [1, 0, -5])
def test_too_small_a_precision_is_refused(precision):
    with pytest.raises(RequestError, match="at least 2 bits"):
        Ball(precision)
