"""The Neumann product loses its digits in rounded arithmetic, forward substitution does not."""

from fractions import Fraction

import pytest

from derivations.kda._neumann import Rounding, exact_inverse, forward_substitution, largest_error, neumann
from verify.numbers.formats import format_named, round_to

BETA = Fraction(9, 10)


def rounding(name: str) -> Rounding:
    target = format_named(name)

    def rounded(x: Fraction) -> Fraction:
        found = round_to(target, x)
        assert found is not None, "no overflow in these cases"
        return found

    return rounded


@pytest.mark.parametrize("size", [2, 4, 8, 16])
@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1, 3), BETA, Fraction(1), Fraction(2)])
def test_both_are_exact_without_rounding(size: int, beta: Fraction) -> None:
    assert neumann(beta, size, lambda x: x) == exact_inverse(beta, size)
    assert forward_substitution(beta, size, lambda x: x) == exact_inverse(beta, size)


@pytest.mark.parametrize(
    ("name", "size", "at_least"),
    [
        ("bfloat16", 16, Fraction(39, 10)),
        ("float16", 16, Fraction(1, 2)),
        ("float32", 64, Fraction(2**30)),
        ("float64", 64, Fraction(3)),
    ],
)
def test_the_product_is_off_by_more_than_half_of_the_largest_entry(
    name: str, size: int, at_least: Fraction
) -> None:
    beta = rounding(name)(BETA)
    assert largest_error(neumann(beta, size, rounding(name)), beta) >= at_least


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("size", [16, 64])
def test_forward_substitution_stays_within_its_bound(name: str, size: int) -> None:
    target = format_named(name)
    beta = rounding(name)(BETA)
    unit = target.unit_roundoff
    # A sum of size − 1 rounded products of size at most β², and a first term β: the usual γ bound.
    operations = 2 * size
    row = operations * unit / (1 - operations * unit) * (beta + (size - 1) * beta**2)
    found = forward_substitution(beta, size, rounding(name))
    assert largest_error(found, beta) <= (1 + beta * (size - 1)) * row


def test_integers_hide_the_loss_at_full_strength() -> None:
    assert largest_error(neumann(Fraction(1), 16, rounding("float16")), Fraction(1)) == 0
