"""Formulas in the terminal: nothing is lost, and every bracket that matters is there."""

import re

import pytest
from sympy import Expr, IndexedBase, Sum, Symbol, exp, log, symbols, sympify

from verify.derive.tree import tree
from verify.report.text import infix

a = IndexedBase("a")
x, y, z, t, j, n = symbols("x y z t j n")


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (t - 1, "t − 1"),
        (Symbol("s^2") ** 2, "(s^2)^2"),
        (a[t - 1], "a[t − 1]"),
        (-x, "−x"),
        (1 - a[t], "1 − a[t]"),
        ((x + y) / 2, "(1/2)·x + (1/2)·y"),
        (x / (x + y), "x/(x + y)"),
        (1 / (x * (x + y) ** 2), "1/(x·(x + y)^2)"),
        (exp(-x) * log(y), "exp(−x)·log(y)"),
        (Sum(a[j] ** 2, (j, 1, n)), "Σ_{j=1..n} a[j]^2"),
    ],
)
def test_a_formula_reads_as_expected(term: Expr, text: str) -> None:
    assert infix(tree(term)) == text


@pytest.mark.parametrize(
    "term",
    [
        x - (y - z),
        x / (y / (z + 1)),
        -(x + y) * (z - 2) ** 3,
        (x - y) ** 2 / (3 * x * y) - x**-2,
        -x / (2 * y) + (-z) ** 3 * exp(x - y),
        x * (-y - z) / -3,
    ],
)
def test_the_text_means_the_formula(term: Expr) -> None:
    """Read back as arithmetic, the text is the same expression."""
    text = infix(tree(term)).replace("−", "-").replace("·", "*").replace("^", "**")
    assert re.fullmatch(r"[-+*/()\w\s]*", text)
    assert (sympify(text) - term).expand().equals(0)
