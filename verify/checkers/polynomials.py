"""Laurent polynomials with rational coefficients over named atoms."""

import itertools
from fractions import Fraction

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted((atom, power) for atom, power in powers.items() if power))


def add(left: Polynomial, right: Polynomial) -> Polynomial:
    """Sum of two polynomials."""
    total = dict(left)
    for monomial, coefficient in right.items():
        total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """Product of two polynomials."""
    total: Polynomial = {}
    for (one, first), (other, second) in itertools.product(left.items(), right.items()):
        monomial = _product(one, other)
        total[monomial] = total.get(monomial, Fraction(0)) + first * second
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def power(base: Polynomial, exponent: int) -> Polynomial:
    """Non-negative integer power."""
    result: Polynomial = {(): Fraction(1)}
    for _ in range(exponent):
        result = multiply(result, base)
    return result


def constant(value: Fraction | int) -> Polynomial:
    """A number as a polynomial."""
    return {(): Fraction(value)} if value else {}


def atom_polynomial(name: str, exponent: int = 1) -> Polynomial:
    """An atom's power as a polynomial."""
    return {((name, exponent),): Fraction(1)}


def key(polynomial: Polynomial) -> str:
    """Text that is the same for equal polynomials."""
    parts = (f"{c}" + "".join(f"*{a}^{e}" for a, e in m) for m, c in polynomial.items())
    return "{" + " + ".join(sorted(parts)) + "}"
