"""A decision procedure for identities: Laurent polynomials over atoms, with finite sums and exp/log laws.

Written from scratch on the standard library, so that it shares nothing with the computer algebra that
found the identity. A term becomes a polynomial with rational coefficients over *atoms*: variables, members
of families, ``exp`` and ``log`` of normal forms, sums of one monomial (several nested sums are one atom
with several bound variables, named by the ordering that gives the smallest key), and polynomials that are
divided by. Equal normal forms are equal wherever all divisors are nonzero; the procedure never proves a
false identity, and may miss a true one (a polynomial divisor inside a sum is compared literally).
"""

import itertools
import re
from dataclasses import dataclass, field
from fractions import Fraction

from verify.checkers.polynomials import (
    Monomial,
    Polynomial,
    add,
    atom_polynomial,
    constant,
    key,
    multiply,
    power,
)
from verify.checkers.terms import IllFormed, Term, substitute

Range = tuple[str, Polynomial, Polynomial]


@dataclass
class NormalForm:
    """Computes normal forms; remembers what its atoms stand for.

    Attributes:
        arguments: argument of each ``exp``/``log`` atom.
        divisors: each composite atom (a polynomial with more than one term that is divided by).
        sums: ranges and summand of each sum atom.
        inverted: every polynomial that was divided by.
        logged: every argument of a logarithm.
        counted: every number of summands that was counted; it must not be negative.
        ranges: limits of the sum that binds each (fresh) bound variable.
    """

    arguments: dict[str, Polynomial] = field(default_factory=dict)
    divisors: dict[str, Polynomial] = field(default_factory=dict)
    sums: dict[str, tuple[tuple[Range, ...], Monomial]] = field(default_factory=dict)
    inverted: list[Polynomial] = field(default_factory=list)
    logged: list[Polynomial] = field(default_factory=list)
    counted: list[Polynomial] = field(default_factory=list)
    ranges: dict[str, tuple[Polynomial, Polynomial]] = field(default_factory=dict)
    _variables: dict[str, frozenset[str]] = field(default_factory=dict)
    _fresh: itertools.count = field(default_factory=itertools.count)  # type: ignore[type-arg]

    def of(self, term: Term) -> Polynomial:
        """The normal form of a term."""
        head = term[0]
        if head == "q":
            return constant(Fraction(term[1]))
        if head == "v":
            return self._atom(f"<{term[1]}>", frozenset({term[1]}))
        if head == "at":
            indices = [self.of(index) for index in term[2]]
            free = frozenset().union(*(self.variables(index) for index in indices))
            return self._atom(f"<{term[1]}>[{','.join(key(index) for index in indices)}]", free)
        if head == "+":
            total: Polynomial = {}
            for item in term[1:]:
                total = add(total, self.of(item))
            return total
        if head == "*":
            result = constant(1)
            for item in term[1:]:
                result = multiply(result, self.of(item))
            return result
        if head == "^":
            base = self.of(term[1])
            return power(base, term[2]) if term[2] >= 0 else power(self.inverse(base), -term[2])
        if head == "exp":
            return self._exp(self.of(term[1]))
        return self._log(self.of(term[1])) if head == "log" else self._sum(term)

    def variables(self, polynomial: Polynomial) -> frozenset[str]:
        """Free variables of a polynomial."""
        atoms = {atom for monomial in polynomial for atom, _ in monomial}
        return frozenset().union(*(self._variables[atom] for atom in atoms))

    def is_zero(self, polynomial: Polynomial) -> bool:
        """Whether a polynomial vanishes once every divisor is multiplied out."""
        return not self.cleared(polynomial)[0]

    def cleared(self, polynomial: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Numerator and denominator without composite atoms below fraction bars."""
        denominator = constant(1)
        while True:
            powers = [p for m in polynomial for a, p in m if a in self.divisors]
            names = {a for m in polynomial for a, p in m if a in self.divisors}
            if not powers:
                return polynomial, denominator
            name = max(names, key=len)
            lowest = max(-dict(m).get(name, 0) for m in polynomial)
            shift = max(lowest, 0)
            total: Polynomial = {}
            for monomial, coefficient in polynomial.items():
                exponent = dict(monomial).get(name, 0) + shift
                rest = tuple(item for item in monomial if item[0] != name)
                total = add(total, multiply({rest: coefficient}, power(self.divisors[name], exponent)))
            polynomial = total
            denominator = multiply(denominator, power(self.divisors[name], shift))

    def inverse(self, polynomial: Polynomial) -> Polynomial:
        """One over a polynomial; a composite one becomes an atom that ``cleared`` multiplies out."""
        if not polynomial:
            raise IllFormed("division by zero")
        self.inverted.append(polynomial)
        numerator, denominator = self.cleared(polynomial)
        if not numerator:
            raise IllFormed("division by zero")
        if len(numerator) == 1:
            ((monomial, coefficient),) = numerator.items()
            flipped = tuple((atom, -exponent) for atom, exponent in monomial)
            return multiply(denominator, {flipped: 1 / coefficient})
        leading = numerator[max(numerator)]
        monic = {monomial: coefficient / leading for monomial, coefficient in numerator.items()}
        name = f"({key(monic)})"
        self.divisors[name] = monic
        self._variables[name] = self.variables(monic)
        return multiply(denominator, {((name, -1),): 1 / leading})

    def _atom(self, name: str, free: frozenset[str]) -> Polynomial:
        self._variables[name] = free
        return atom_polynomial(name)

    def _exp(self, argument: Polynomial) -> Polynomial:
        result = constant(1)
        for monomial, coefficient in argument.items():
            numerator, denominator = coefficient.numerator, coefficient.denominator
            name = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else ""
            if name.startswith("log{") and denominator == 1:
                inside = self.arguments[name]
                factor = inside if numerator >= 0 else self.inverse(inside)
                result = multiply(result, power(factor, abs(numerator)))
                continue
            inner = {monomial: Fraction(1, denominator)}
            atom = f"exp{key(inner)}"
            self.arguments[atom] = inner
            self._variables[atom] = self.variables(inner)
            result = multiply(result, atom_polynomial(atom, numerator))
        return result

    def _log(self, argument: Polynomial) -> Polynomial:
        self.logged.append(argument)
        if len(argument) != 1:
            return self._log_atom(argument)
        # The logarithm of a product of positive factors; that they are positive is asked where it is logged.
        ((monomial, coefficient),) = argument.items()
        total = self._log_atom(constant(coefficient.numerator))
        total = add(total, multiply(constant(-1), self._log_atom(constant(coefficient.denominator))))
        for atom, exponent in monomial:
            inside = atom_polynomial(atom)
            self.logged.append(inside)
            factor = self.arguments[atom] if atom.startswith("exp{") else self._log_atom(inside)
            total = add(total, multiply(constant(exponent), factor))
        return total

    def _log_atom(self, argument: Polynomial) -> Polynomial:
        if argument == constant(1):
            return {}
        atom = f"log{key(argument)}"
        self.arguments[atom] = argument
        return self._atom(atom, self.variables(argument))

    def _sum(self, term: Term) -> Polynomial:
        _, bound, lower, upper, body = term
        low, high = self.of(lower), self.of(upper)
        span = add(high, {m: -c for m, c in low.items()})
        if span == constant(-1):
            return {}
        if not span:
            return self.of(substitute(body, bound, lower))
        name = f"#{next(self._fresh)};"
        self.ranges[name] = (low, high)
        summand = self.of(substitute(body, bound, ("v", name)))
        total: Polynomial = {}
        for monomial, coefficient in summand.items():
            outside = tuple(item for item in monomial if name not in self._variables[item[0]])
            inside = tuple(item for item in monomial if name in self._variables[item[0]])
            if inside:
                value = self._sum_atoms((name, low, high), inside)
            else:
                value = add(span, constant(1))
                self.counted.append(value)
            total = add(total, multiply({outside: coefficient}, value))
        return total

    def _sum_atoms(self, outer: Range, monomial: Monomial) -> Polynomial:
        """A sum of one monomial: nested sums are joined, then split into parts sharing no bound variable."""
        ranges, factors = [outer], []
        for atom, exponent in monomial:
            if atom in self.sums and exponent > 0:
                for _ in range(exponent):
                    copied, inner = self._renamed(atom)
                    ranges.extend(copied)
                    factors.extend(inner)
            else:
                factors.append((atom, exponent))
        result = constant(1)
        for part in self._connected(ranges, factors):
            result = multiply(result, self._canonical_sum(*part))
        return result

    def _renamed(self, atom: str) -> tuple[list[Range], list[tuple[str, int]]]:
        ranges, monomial = self.sums[atom]
        factors = list(monomial)
        renamed: list[Range] = list(ranges)
        for old, _, _ in ranges:
            new = f"#{next(self._fresh)};"
            factors = [(self._rename_atom(a, old, new), e) for a, e in factors]
            renamed = [
                (new if b == old else b, self._rename(lo, old, new), self._rename(hi, old, new))
                for b, lo, hi in renamed
            ]
        return renamed, factors

    def _rename(self, polynomial: Polynomial, old: str, new: str) -> Polynomial:
        return {
            tuple(sorted((self._rename_atom(a, old, new), e) for a, e in m)): c for m, c in polynomial.items()
        }

    def _rename_atom(self, atom: str, old: str, new: str) -> str:
        if old not in self._variables[atom]:
            return atom
        renamed = atom.replace(old, new)
        self._variables[renamed] = (self._variables[atom] - {old}) | {new}
        if atom in self.arguments:
            self.arguments[renamed] = self._rename(self.arguments[atom], old, new)
        if atom in self.divisors:
            self.divisors[renamed] = self._rename(self.divisors[atom], old, new)
        if atom in self.sums:
            ranges, monomial = self.sums[atom]
            self.sums[renamed] = (
                tuple((b, self._rename(lo, old, new), self._rename(hi, old, new)) for b, lo, hi in ranges),
                tuple(sorted((self._rename_atom(a, old, new), e) for a, e in monomial)),
            )
        return renamed

    def _connected(
        self, ranges: list[Range], factors: list[tuple[str, int]]
    ) -> list[tuple[list[Range], list[tuple[str, int]]]]:
        names = {name for name, _, _ in ranges}
        groups: list[set[str]] = []
        links: list[set[str]] = [set(self._variables[atom] & names) for atom, _ in factors]
        links += [set(({b} | self.variables(lo) | self.variables(hi)) & names) for b, lo, hi in ranges]
        for link in links:
            joined = link.union(*(group for group in groups if group & link))
            groups = [group for group in groups if not group & link] + [joined]
        return [
            (
                [item for item in ranges if item[0] in group],
                [item for item in factors if self._variables[item[0]] & group],
            )
            for group in groups
        ]

    def _canonical_sum(self, ranges: list[Range], factors: list[tuple[str, int]]) -> Polynomial:
        spelled = min(self._spell(order, factors) for order in itertools.permutations(ranges))
        name, bound = f"sum({spelled[0]})", spelled[1]
        if name not in self.sums:
            renaming = {old: f"${len(self.sums)}.{place};" for place, old in enumerate(bound)}
            copied: list[Range] = list(ranges)
            monomial = list(factors)
            for old, new in renaming.items():
                monomial = [(self._rename_atom(a, old, new), e) for a, e in monomial]
                copied = [
                    (new if b == old else b, self._rename(lo, old, new), self._rename(hi, old, new))
                    for b, lo, hi in copied
                ]
            self.sums[name] = (tuple(copied), tuple(sorted(monomial)))
            outer = frozenset().union(*(self._variables[a] for a, _ in factors))
            for _, lo, hi in ranges:
                outer |= self.variables(lo) | self.variables(hi)
            self._variables[name] = outer - {b for b, _, _ in ranges}
        return atom_polynomial(name)

    def _spell(self, order: tuple[Range, ...], factors: list[tuple[str, int]]) -> tuple[str, tuple[str, ...]]:
        names = tuple(name for name, _, _ in order)
        # A level above every sum written inside the factors, so that no inner bound name is taken twice.
        inside = "".join([*(atom for atom, _ in factors), *(key(lo) + key(hi) for _, lo, hi in order)])
        level = 1 + max((int(found) for found in re.findall(r"@(\d+)\.", inside)), default=0)

        def plain(text: str) -> str:
            for place, name in enumerate(names):
                text = text.replace(name, f"@{level}.{place};")
            return text

        limits = sorted(plain(f"{b}:{key(lo)}..{key(hi)}") for b, lo, hi in order)
        body = sorted(plain(f"{atom}^{exponent}") for atom, exponent in factors)
        return "|".join([*limits, *body]), names
