"""Seeded sign keys keep their promise, or say that none was found."""

from fractions import Fraction
from itertools import combinations

import pytest

from derivations.memory._codes import codes, width
from verify.model.errors import RequestError


@pytest.mark.parametrize(("n", "within"), [(2, "1/2"), (20, "1/2"), (60, "3/4")])
def test_the_formula_gives_enough_entries(n, within):
    bound = Fraction(within)
    keys = codes(n, width(n, bound), bound, seed=1)
    assert len(keys) == n
    assert {abs(x) for key in keys for x in key} == {1}
    entries = len(keys[0])
    for one, other in combinations(keys, 2):
        assert abs(sum(x * y for x, y in zip(one, other, strict=True))) <= bound * entries


def test_a_seed_gives_the_same_keys():
    assert codes(5, 40, Fraction(1, 2), seed=2) == codes(5, 40, Fraction(1, 2), seed=2)


def test_impossible_requests_are_refused():
    with pytest.raises(RequestError, match="give more entries"):
        codes(9, 2, Fraction(1, 4), seed=1)
