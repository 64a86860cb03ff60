"""Signs of normal forms from declared signs of atoms: structural, sound, incomplete."""

from typing import Any

from verify.checkers.normal_form import NormalForm
from verify.checkers.ordering import Ordering
from verify.checkers.polynomials import Monomial, Polynomial, add, atom_polynomial, constant, multiply
from verify.checkers.terms import Term, read, substitute


class Signs:
    """What a derivation's setting says about signs, applied to polynomials.

    Args:
        forms: the normal forms whose atoms are asked about.
        setting: the setting as it stands in the certificate.
    """

    def __init__(self, forms: NormalForm, setting: dict[str, Any]) -> None:
        self.forms = forms
        self.strict = set(setting["positive"])
        self.weak = self.strict | set(setting["nonnegative"])
        self.nonzero = [forms.of(read(term)) for term in setting["nonzero"]]
        self.facts = Ordering.of(setting).facts

    def counts(self, value: Polynomial) -> bool:
        """Whether a number of summands, or an index, is certainly >= 0."""
        return Ordering(self.facts, self.forms.ranges).nonnegative(value)

    def positive(self, polynomial: Polynomial) -> bool:
        """Whether the value is certainly > 0."""
        return self.nonnegative(polynomial) and any(self._monomial(m, strict=True) for m in polynomial)

    def nonnegative(self, polynomial: Polynomial) -> bool:
        """Whether the value is certainly >= 0: every term is."""
        return all(c > 0 and self._monomial(m, strict=False) for m, c in polynomial.items())

    def is_nonzero(self, polynomial: Polynomial) -> bool:
        """Whether the value certainly does not vanish."""
        negated = {m: -c for m, c in polynomial.items()}
        if self.positive(polynomial) or self.positive(negated):
            return True
        if len(polynomial) == 1:
            ((monomial, _),) = polynomial.items()
            if all(self._atom_nonzero(atom) for atom, _ in monomial):
                return True
        return any(self._proportional(polynomial, known) for known in self.nonzero)

    def term_nonnegative(self, term: Term) -> bool:
        """Whether a term is >= 0 as it is written: squares, and products, sums and quotients of such."""
        head = term[0]
        if head == "^" and term[2] % 2 == 0:
            return True
        if head in ("+", "*") and all(self.term_nonnegative(item) for item in term[1:]):
            return True
        if head == "sum" and self.term_nonnegative(substitute(term[4], term[1], ("v", "#"))):
            return True
        if head == "^" and self.term_nonnegative(term[1]):
            return True
        return self.nonnegative(self.forms.of(term))

    def _atom_nonzero(self, atom: str) -> bool:
        known = {m[0][0] for item in self.nonzero if len(item) == 1 for m in item if len(m) == 1}
        return atom in known or self._atom(atom, strict=True)

    def _proportional(self, one: Polynomial, other: Polynomial) -> bool:
        if not one or not other:
            return False
        first = next(iter(one))
        return first in other and one == multiply(other, constant(one[first] / other[first]))

    def _monomial(self, monomial: Monomial, *, strict: bool) -> bool:
        for atom, exponent in monomial:
            even = exponent % 2 == 0 and not strict
            if not even and not self._atom(atom, strict=strict or exponent < 0):
                return False
        return True

    def _atom(self, atom: str, *, strict: bool) -> bool:
        names = self.strict if strict else self.weak
        if atom.startswith("exp{"):
            return True
        if atom.startswith("<") and atom[1 : atom.index(">")] in names:
            return True
        if atom.startswith("<") and atom.endswith(">"):
            return self.counts(add(atom_polynomial(atom), constant(-1 if strict else 0)))
        if atom in self.forms.divisors:
            inside = self.forms.divisors[atom]
            return self.positive(inside) if strict else self.nonnegative(inside)
        if atom in self.forms.sums:
            ranges, monomial = self.forms.sums[atom]
            full = not strict or all(self._nonempty(low, high) for _, low, high in ranges)
            return full and self._monomial(monomial, strict=strict)
        return False

    def _nonempty(self, low: Polynomial, high: Polynomial) -> bool:
        length = add(high, multiply(constant(-1), low))
        return Ordering(self.facts, {}).nonnegative(length)
