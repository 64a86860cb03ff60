"""The rewriting a step may do before its two sides are compared: unfold definitions, cut sums."""

from typing import Any

from verify.checkers.normal_form import NormalForm, key
from verify.checkers.terms import IllFormed, Term, minus, plus, read, rebuild, substitute

Bounds = dict[str, Term]


def unfold(term: Term, definition: dict[str, Any], bounds: Bounds | None = None) -> Term:
    """Replace every instance of a definition's left side, once, from the outside in.

    Args:
        term: where to replace.
        definition: ``lhs``, ``rhs``, ``free`` indices and ``guards`` as in the certificate.
        bounds: upper limits of the sums around ``term``, by bound variable.
    """
    bounds = bounds or {}
    values = _match(term, read(definition["lhs"]), definition["free"])
    if values is not None and all(
        _at_most(values[name], read(limit), bounds) for name, limit in definition["guards"]
    ):
        return _instantiate(read(definition["rhs"]), values)
    if term[0] == "sum":
        _, bound, lower, upper, body = term
        inner = unfold(body, definition, {**bounds, bound: upper})
        return ("sum", bound, unfold(lower, definition, bounds), unfold(upper, definition, bounds), inner)
    return rebuild(term, lambda item: unfold(item, definition, bounds))


def _match(term: Term, pattern: Term, free: list[str]) -> Bounds | None:
    if pattern[0] == "v":
        return {} if term == pattern else None
    if term[0] != "at" or term[1] != pattern[1] or len(term[2]) != len(pattern[2]):
        return None
    values: Bounds = {}
    for index, wanted in zip(term[2], pattern[2], strict=True):
        if wanted[0] == "v" and wanted[1] in free:
            if values.setdefault(wanted[1], index) != index:
                return None
        elif key(NormalForm().of(index)) != key(NormalForm().of(wanted)):
            return None
    return values


def _instantiate(term: Term, values: Bounds) -> Term:
    # Through fresh names, so that one value may mention the name of another free index.
    for place, name in enumerate(values):
        term = substitute(term, name, ("v", f"?{place}"))
    for place, value in enumerate(values.values()):
        term = substitute(term, f"?{place}", value)
    return term


def _at_most(index: Term, limit: Term, bounds: Bounds) -> bool:
    """Whether ``index <= limit`` is certain: they differ by an integer, or the index is summed up to there."""
    difference = NormalForm().of(minus(limit, index))
    if not difference:
        return True
    if set(difference) == {()}:
        return difference[()] >= 0
    return index[0] == "v" and index[1] in bounds and _at_most(bounds[index[1]], limit, {})


def split(term: Term, limit: Term, at: Term) -> Term:
    """Cut every sum whose upper limit is ``limit`` into one up to ``at`` and one from ``at + 1``."""
    if term[0] == "sum":
        _, bound, lower, upper, body = term
        body = split(body, limit, at)
        forms = NormalForm()
        if key(forms.of(upper)) == key(forms.of(limit)):
            following = plus(at, ("q", "1"))
            return plus(("sum", bound, lower, at, body), ("sum", bound, following, upper, body))
        return ("sum", bound, lower, upper, body)
    return rebuild(term, lambda item: split(item, limit, at))


def combination(uses: list[Any], hypotheses: dict[str, dict[str, Any]]) -> Term:
    """The stated sum of multiplier · (lhs − rhs)."""
    total: Term = ("q", "0")
    for name, multiplier in uses:
        if name not in hypotheses:
            raise IllFormed(f"no hypothesis is called {name!r}")
        equation = hypotheses[name]
        difference = minus(read(equation["lhs"]), read(equation["rhs"]))
        total = plus(total, ("*", read(multiplier), difference))
    return total
