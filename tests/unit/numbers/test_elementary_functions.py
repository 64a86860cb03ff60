"""exp, log, sqrt and shift of every number system, against mpmath at three times the precision."""

import random
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest
import sympy

from verify.model.errors import RequestError
from verify.numbers.ball import Ball
from verify.numbers.exact import Exact
from verify.numbers.float64 import Float64
from verify.numbers.multiprecision import Multiprecision, to_rational
from verify.numbers.symbolic import Symbolic

ORACLE = mpmath.MPContext()
ORACLE.prec = 384
FUNCTIONS = ["exp", "log", "sqrt"]


def samples(function):
    rng = random.Random(function)
    low = -30 if function == "exp" else 0
    return [Fraction(rng.uniform(low, 30)) for _ in range(30)]


def oracle(function, x: Fraction) -> flint.arb:
    """mpmath's value, with a radius 2^60 times its last bit."""
    value = getattr(ORACLE, function)(ORACLE.mpf(float(x)))
    with flint.ctx.workprec(ORACLE.prec):
        mid = flint.arb(flint.fmpq(*to_rational(value).as_integer_ratio()))
        return mid + flint.arb(0, 1) * abs(mid) * flint.arb(2) ** (60 - ORACLE.prec)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_ball_encloses_closely(function):
    for x in samples(function):
        result = getattr(Ball(128), function)(Ball(128).number(float(x)))
        assert result.overlaps(oracle(function, x))
        assert result.rel_accuracy_bits() >= 120


@pytest.mark.parametrize("function", FUNCTIONS)
def test_multiprecision_is_within_a_unit(function):
    numbers = Multiprecision(128)
    for x in samples(function):
        value = getattr(numbers, function)(numbers.number(x))
        error = ORACLE.mpf(value) - getattr(ORACLE, function)(ORACLE.mpf(float(x)))
        assert abs(error) <= abs(value) * ORACLE.mpf(2) ** -127


@pytest.mark.parametrize("function", FUNCTIONS)
def test_float64_is_within_the_bound_numpy_tests_for(function):
    """NumPy's own validation sets allow 1 unit in the last place from the correctly rounded value: 3u."""
    x = np.array([float(s) for s in samples(function)])
    for given, value in zip(x, getattr(Float64(), function)(x), strict=True):
        true = getattr(ORACLE, function)(ORACLE.mpf(given))
        assert abs(ORACLE.mpf(value) - true) <= 3 * abs(true) * ORACLE.mpf(2) ** -53


def test_exp_entries_is_exp_of_each_entry():
    rows = [[0, Fraction(1, 2)], [-1, 2]]
    for numbers in (Ball(), Multiprecision(), Float64(), Symbolic()):
        result = numbers.to_lists(numbers.exp_entries(numbers.matrix(rows)))
        for i in range(2):
            for j in range(2):
                assert str(result[i][j]) == str(numbers.exp(numbers.number(rows[i][j])))


def test_exact_has_only_the_rational_values():
    numbers = Exact()
    assert numbers.exp(numbers.number(0)) == 1
    assert numbers.log(numbers.number(1)) == 0
    assert numbers.sqrt(numbers.number("4/9")) == numbers.number("2/3")
    assert numbers.exp_entries(numbers.zeros(2, 2)) == numbers.matrix([[1, 1], [1, 1]])
    with pytest.raises(RequestError, match=r"exp\(1/2\) is not rational"):
        numbers.exp(numbers.number("1/2"))
    with pytest.raises(RequestError, match="not rational"):
        numbers.exp_entries(numbers.eye(2))
    with pytest.raises(RequestError, match=r"log\(2\) is not rational"):
        numbers.log(numbers.number(2))
    with pytest.raises(RequestError, match=r"sqrt\(2\) is not rational"):
        numbers.sqrt(numbers.number(2))


def test_symbolic_functions_stay_exact():
    numbers = Symbolic()
    x = sympy.Symbol("x")
    assert numbers.exp(x) == sympy.exp(x)
    assert numbers.log(numbers.exp(numbers.number(3))) == 3
    assert numbers.sqrt(numbers.number(2)) ** 2 == 2


@pytest.mark.parametrize("numbers", [Exact(), Ball(), Float64(), Multiprecision()])
def test_outside_the_domain_is_refused(numbers):
    with pytest.raises(RequestError, match="log"):
        numbers.log(numbers.number(0))
    with pytest.raises(RequestError, match="sqrt"):
        numbers.sqrt(numbers.number(-1))


def test_shift_is_the_largest_entry_where_exp_could_fail():
    assert Exact().shift(Exact().matrix([[1], [3], [2]])) == 3
    batch = np.array([[[1.0], [3.0]], [[9.0], [-2.0]]])
    assert Float64().shift(batch).tolist() == [3.0, 9.0]


@pytest.mark.parametrize("numbers", [Ball(), Multiprecision(), Symbolic()])
def test_shift_is_zero_where_exp_cannot_overflow(numbers):
    assert numbers.shift(numbers.matrix([[1], [3]])) == 0


def test_to_rational_is_exact():
    numbers = Multiprecision(64)
    for x in (Fraction(-3, 8), Fraction(0), Fraction(2**70), Fraction(5)):
        assert to_rational(numbers.number(x)) == x
    third = to_rational(numbers.number("-1/3"))
    assert third != Fraction(-1, 3)
    assert abs(third + Fraction(1, 3)) <= Fraction(1, 3) / 2**64
    with pytest.raises(RequestError, match="not a finite number"):
        to_rational(mpmath.mpf("inf"))
