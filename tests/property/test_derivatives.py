"""The step checker's derivative against dual numbers, on random formulas with nested sums."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from verify.checkers.differentiation import Differentiation
from verify.checkers.ordering import Ordering
from verify.checkers.terms import IllFormed, Term, plus, times
from verify.derive.instances import World

N, K = ("v", "n"), ("v", "k")
SIZES = {"n": 4, "k": 2}


def formula(source: random.Random, bound: tuple[str, ...], depth: int) -> Term:
    """A random formula in x[k], x and y of bound indices, and a scalar z, with sums from 1 to n."""
    kind = source.choice("+*^sss" if depth else "xyz")
    if kind == "s":
        name = f"i{len(bound)}"
        return ("sum", name, ("q", "1"), N, formula(source, (*bound, name), depth - 1))
    if kind in "+*":
        parts = [formula(source, bound, depth - 1) for _ in range(2)]
        return plus(*parts) if kind == "+" else times(*parts)
    if kind == "^":
        return ("^", formula(source, bound, depth - 1), 2)
    index = ("v", source.choice((*bound, "k")))
    return ("v", "z") if kind == "z" else ("at", kind, (index,))


def as_list(term: Any) -> Any:
    return [as_list(item) for item in term] if isinstance(term, tuple) else term


def world(value: Callable[[str], Fraction]) -> World:
    return World(number=Fraction, exp=None, log=None, value=value, sizes=SIZES, variable="x[2]")


@pytest.mark.parametrize("seed", range(150))
def test_the_derivative_is_that_of_dual_numbers(seed: int) -> None:
    source = random.Random(seed)
    term = formula(source, (), 4)
    ordering = Ordering.of({"order": [[["q", "1"], ["v", "k"]], [["v", "k"], ["v", "n"]]], "nonempty": []})
    try:
        slope = Differentiation(("at", "x", (K,)), frozenset(), ordering).of(term)
    except IllFormed:
        pytest.fail("x[k] and sums from 1 to n with 1 <= k <= n are all it needs to know")
    values: dict[str, Fraction] = {}

    def value(name: str) -> Fraction:
        return values.setdefault(name, Fraction(source.randint(-9, 9), source.randint(1, 5)))

    here = world(value)
    assert here.evaluate(as_list(slope)).value == here.evaluate(as_list(term)).slope
