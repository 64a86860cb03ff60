"""Signs of normal forms from declared signs of atoms: structural, sound, incomplete."""

from verify.checkers.normal_form import Monomial, NormalForm, Polynomial, constant, key, multiply
from verify.checkers.terms import Term, read


class Signs:
    """What a derivation's setting says about signs, applied to polynomials.

    Args:
        forms: the normal forms whose atoms are asked about.
        setting: the setting as it stands in the certificate.
    """

    def __init__(self, forms: NormalForm, setting: dict[str, list[object]]) -> None:
        self.forms = forms
        self.strict = set(setting["positive"])
        self.weak = self.strict | set(setting["nonnegative"])
        self.nonzero = [forms.of(read(term)) for term in setting["nonzero"]]
        self.nonempty = {key(forms.of(read(term))) for term in setting["nonempty"]}

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
        if head == "sum" and self.term_nonnegative(term[4]):
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
        ratio = next(iter(one.values())) / other.get(next(iter(one)), constant(0).get((), 1))
        return one == multiply(other, constant(ratio))

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
        if atom.startswith("<") and atom[1:-1] in names:
            return True
        if "[" in atom and atom.split("[", 1)[0] in names:
            return True
        if atom in self.forms.divisors:
            inside = self.forms.divisors[atom]
            return self.positive(inside) if strict else self.nonnegative(inside)
        if atom in self.forms.sums:
            ranges, monomial = self.forms.sums[atom]
            full = len(ranges) == 1 and key(ranges[0][2]) in self.nonempty
            return (full or not strict) and self._monomial(monomial, strict=strict)
        return False
