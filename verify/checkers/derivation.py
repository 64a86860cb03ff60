"""Re-check derivations: every step on its own, and that the steps join up to the goal.

Trusted here: the normal form of ``normal_form.py``, the derivative of ``differentiation.py``, the signs of
``signs.py``, the inequalities of ``ordering.py``, and three facts of calculus: exp is injective, a function
on x > 0 whose derivative has the sign of x − a has its only minimum at a, and induction over the integers.
"""

from typing import Any

from verify.checkers.differentiation import Differentiation
from verify.checkers.normal_form import NormalForm
from verify.checkers.ordering import Ordering
from verify.checkers.polynomials import key
from verify.checkers.rewriting import Unfolding, combination, split
from verify.checkers.signs import Signs
from verify.checkers.terms import (
    ONE,
    ZERO,
    IllFormed,
    Term,
    children,
    families,
    free_variables,
    minus,
    plus,
    read,
    substitute,
    times,
)
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

HYPOTHESIS = "induction hypothesis"
"""Name of the definition that an induction's step may unfold and nothing else may contain."""

NAME = "step checker"
KINDS = frozenset({"derivation", "induction", "minimum"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when every step follows, ``undecided`` naming the first that does not."""
    check = {"derivation": _derivation, "induction": _induction, "minimum": _minimum}[obligation.kind]
    try:
        detail = check(dict(obligation.data))
    except IllFormed as problem:
        return Check(NAME, "checker", Verdict.UNDECIDED, str(problem))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as problem:
        return Check(NAME, "checker", Verdict.UNDECIDED, f"malformed derivation: {problem!r}")
    return Check(NAME, "checker", Verdict.PROVED, detail)


def _derivation(data: dict[str, Any]) -> str:
    before = read(data["goal"]["lhs"])
    relation = "="
    by: list[Term] = []
    for number, step in enumerate(data["steps"], start=1):
        where = f"step {number} ({step['label']})"
        if read(step["before"]) != before:
            raise IllFormed(f"{where} does not start where the last one ended")
        if step["rule"] == "differentiate":
            _identity_so_far(data["steps"][: number - 1], where)
            by.append(read(step["variable"]))
        _step(step, data["setting"], where)
        before = read(step["after"])
        relation = ">=" if step["relation"] == ">=" else relation
    if before != read(data["goal"]["rhs"]) or relation != data["goal"]["relation"]:
        raise IllFormed("the steps do not end at the goal")
    if by != [read(variable) for variable in data["goal"]["derivatives"]]:
        raise IllFormed("the goal does not say in which variables derivatives are taken")
    return f"{len(data['steps'])} steps, each followed on its own"


def _identity_so_far(steps: list[dict[str, Any]], where: str) -> None:
    """Only identities may be differentiated, not what holds under a hypothesis or is an inequality."""
    if any(step["uses"] or step["terms"] for step in steps):
        raise IllFormed(f"{where} differentiates what holds only under a hypothesis, or an inequality")


def _step(step: dict[str, Any], setting: dict[str, Any], where: str) -> None:
    _rule_fits(step, where)
    before, after = _rewritten(step, setting, where)
    forms = NormalForm()
    signs = Signs(forms, setting)
    if step["rule"] == "differentiate":
        forms.of(before)
        before = _differentiated(before, read(step["variable"]), setting)
    elif step["rule"] in ("logarithm", "exponentiate"):
        head = "exp" if step["rule"] == "logarithm" else "log"
        before, after = (head, before), (head, after)
    dropped = plus(*(read(term) for term in step["terms"]), ZERO)
    combined = combination(step["uses"], {item["name"]: item for item in setting["hypotheses"]})
    rest = forms.of(minus(before, plus(after, dropped, combined)))
    if not forms.is_zero(rest):
        raise IllFormed(f"{where}: before − after does not reduce to zero, but to {key(rest)[:200]}")
    _side_conditions(step, forms, signs, where)


def _rewritten(step: dict[str, Any], setting: dict[str, Any], where: str) -> tuple[Term, Term]:
    known = Ordering.of(setting)
    definitions = {item["name"]: item for item in setting["definitions"]}
    before, after = read(step["before"]), read(step["after"])
    for limit, at in step["splits"]:
        before, after = (split(side, read(limit), read(at), known) for side in (before, after))
    for name in step["unfold"]:
        if name not in definitions:
            raise IllFormed(f"{where} unfolds {name!r}, which is not defined")
        unfolding = Unfolding(definitions[name])
        before, after = unfolding.of(before, known), unfolding.of(after, known)
    return before, after


def _differentiated(term: Term, variable: Term, setting: dict[str, Any]) -> Term:
    if variable[0] not in ("v", "at"):
        raise IllFormed(f"nothing can be differentiated by {variable}")
    _independent(term, variable, setting["definitions"])
    distinct = frozenset(frozenset(pair) for pair in setting["distinct"])
    return Differentiation(variable, distinct, Ordering.of(setting)).of(term)


def _independent(term: Term, variable: Term, definitions: list[dict[str, Any]]) -> None:
    """Whatever is still defined by something else must not depend on the variable."""
    meaning: dict[str, set[str]] = {}
    for item in definitions:
        lhs, rhs = read(item["lhs"]), read(item["rhs"])
        meaning.setdefault(lhs[1], set()).update(free_variables(rhs) | families(rhs))
    if variable[1] in meaning:
        raise IllFormed(f"{variable[1]} is defined by something else, so nothing can be differentiated by it")
    reached: set[str] = set()
    waiting = free_variables(term) | families(term)
    while waiting - reached:
        name = min(waiting - reached)
        reached.add(name)
        waiting = waiting | meaning.get(name, set())
        if variable[1] in meaning.get(name, set()):
            raise IllFormed(f"{name} depends on {variable[1]} and must be unfolded before differentiating")


_PARAMETERS = {
    "rearrange": set(),
    "unfold": {"unfold"},
    "split sum": {"splits", "unfold"},
    "use hypothesis": {"uses"},
    "logarithm": {"unfold", "uses"},
    "exponentiate": {"unfold", "uses"},
    "differentiate": {"unfold", "variable"},
    "drop non-negative terms": {"terms", "unfold"},
}


def _rule_fits(step: dict[str, Any], where: str) -> None:
    """A rule may use no more than its name says."""
    used = {name for name in ("unfold", "splits", "uses", "variable", "terms") if step[name]}
    extra = used - _PARAMETERS.get(step["rule"], set())
    if step["rule"] not in _PARAMETERS or extra:
        raise IllFormed(f"{where}: the rule {step['rule']!r} does not allow {sorted(extra) or 'anything'}")
    wanted = ">=" if step["rule"] == "drop non-negative terms" else "="
    if step["relation"] != wanted:
        raise IllFormed(f"{where}: the relation {step['relation']} does not fit the rule {step['rule']}")


def _side_conditions(step: dict[str, Any], forms: NormalForm, signs: Signs, where: str) -> None:
    for term in step["terms"]:
        if not signs.term_nonnegative(read(term)):
            raise IllFormed(f"{where}: nothing says that the dropped term {term} is >= 0")
    _defined(forms, signs, where)


def _defined(forms: NormalForm, signs: Signs, where: str) -> None:
    for divisor in forms.inverted:
        if not signs.is_nonzero(divisor):
            raise IllFormed(f"{where}: nothing says that {key(divisor)} is not zero")
    for argument in forms.logged:
        if not signs.positive(argument):
            raise IllFormed(f"{where}: nothing says that {key(argument)}, inside a logarithm, is positive")
    for count in forms.counted:
        if not signs.counts(count):
            raise IllFormed(f"{where}: nothing says that {key(count)}, a number of summands, is not negative")


def _induction(data: dict[str, Any]) -> str:
    variable, lhs, rhs, first = data["variable"], *(read(data[part]) for part in ("lhs", "rhs", "first"))
    if variable in free_variables(first) or variable in data["free"]:
        raise IllFormed("the first value, or a free index, is the induction variable itself")
    earlier = minus(("v", variable), ONE)
    _same_goal(data["base"], *(substitute(side, variable, first) for side in (lhs, rhs)))
    _same_goal(data["step"], lhs, rhs)
    if any(d["name"] == HYPOTHESIS for d in data["base"]["setting"]["definitions"]):
        raise IllFormed("the base case assumes the induction hypothesis")
    for found in data["step"]["setting"]["definitions"]:
        if found["name"] == HYPOTHESIS:
            _same(read(found["lhs"]), substitute(lhs, variable, earlier), "the induction hypothesis")
            _same(read(found["rhs"]), substitute(rhs, variable, earlier), "the induction hypothesis")
            if found["free"] != data["free"]:
                raise IllFormed("the induction hypothesis is assumed for more indices than the goal has")
    free = frozenset(data["free"])
    for part in ("base", "step"):
        for found in data[part]["setting"]["definitions"]:
            if found["lhs"][0] == "v" and found["lhs"][1] in free | {variable}:
                raise IllFormed(f"the {part} gives {found['lhs'][1]} a value: it is shown for that one only")
    if limited := _restricted(data["base"]["setting"]) & (free | {variable}):
        raise IllFormed(f"the base case is shown only for some values of {sorted(limited)}")
    if limited := _restricted(data["step"]["setting"]) & free:
        raise IllFormed(f"the step is shown only for some values of {sorted(limited)}")
    _every_step(data["step"]["setting"], variable, first)
    return f"base: {_derivation(data['base'])}; step: {_derivation(data['step'])}"


def _inequalities(setting: dict[str, Any]) -> list[tuple[Term, Term]]:
    pairs = [(read(low), read(high)) for low, high in setting["order"]]
    return pairs + [(ONE, read(limit)) for limit in setting["nonempty"]]


def _restricted(setting: dict[str, Any]) -> set[str]:
    """The variables of which a setting considers some values only."""
    terms = [side for pair in _inequalities(setting) for side in pair]
    terms += [read(item[side]) for item in setting["hypotheses"] for side in ("lhs", "rhs")]
    terms += [read(item) for item in setting["nonzero"]]
    names = {name for pair in setting["distinct"] for name in pair}
    names |= {*setting["positive"], *setting["nonnegative"]}
    return names.union(*(free_variables(term) for term in terms))


def _every_step(setting: dict[str, Any], variable: str, first: Term) -> None:
    """The step must hold for every value of the induction variable after the first."""
    pairs = _inequalities(setting)
    other = [(low, high) for low, high in pairs if variable not in free_variables(minus(high, low))]
    facts = [NormalForm().of(minus(high, low)) for low, high in (*other, (plus(first, ONE), ("v", variable)))]
    for low, high in pairs:
        if not Ordering(facts, {}).at_most(low, high):
            raise IllFormed(f"the step is shown only where {low} <= {high}, which the start does not give")
    if variable in _restricted({**setting, "order": [], "nonempty": [], "hypotheses": [], "nonzero": []}):
        raise IllFormed(f"the step is shown only for some values of {variable}")
    equations = [minus(read(item["lhs"]), read(item["rhs"])) for item in setting["hypotheses"]]
    for term in (*equations, *(read(item) for item in setting["nonzero"])):
        counted = any(atom == f"<{variable}>" for monomial in NormalForm().of(term) for atom, _ in monomial)
        if counted or _speaks_of(term, variable):
            raise IllFormed(f"the step is shown only for the values of {variable} that fit {term}")


def _speaks_of(term: Term, variable: str) -> bool:
    """Whether a variable occurs as a number. Naming a member, as in x[t], or the end of a sum is no limit on
    t: the assumption is then one about the family, at every t."""
    if term[0] == "at":
        return False
    inner = term[4:] if term[0] == "sum" else tuple(children(term))
    return term == ("v", variable) or any(_speaks_of(item, variable) for item in inner)


def _same_goal(chain: dict[str, Any], lhs: Term, rhs: Term) -> None:
    if chain["goal"]["relation"] != "=" or chain["goal"]["derivatives"]:
        raise IllFormed("an induction needs equations")
    _same(read(chain["goal"]["lhs"]), lhs, f"the start of «{chain['title']}»")
    _same(read(chain["goal"]["rhs"]), rhs, f"the end of «{chain['title']}»")


def _same(one: Term, other: Term, what: str) -> None:
    forms = NormalForm()
    if not forms.is_zero(forms.of(minus(one, other))):
        raise IllFormed(f"{what} is not what the induction needs")


def _minimum(data: dict[str, Any]) -> str:
    name = data["variable"]
    variable: Term = ("v", name)
    nothing: dict[str, list[str]] = {part: [] for part in ("nonnegative", "nonzero", "nonempty", "order")}
    setting: dict[str, Any] = {**nothing, "positive": [name]}
    function, point, value, slope = (read(data[part]) for part in ("function", "point", "value", "slope"))
    if name in free_variables(point) | free_variables(value):
        raise IllFormed(f"the point and the value must not depend on {name}")
    forms = NormalForm()
    signs = Signs(forms, setting)
    forms.of(function)
    change = Differentiation(variable, frozenset(), Ordering([], {})).of(function)
    factored = times(minus(variable, point), slope)
    if not forms.is_zero(forms.of(minus(change, factored))):
        raise IllFormed("the derivative is not (x − point) · slope")
    if not signs.positive(forms.of(slope)) or not signs.positive(forms.of(point)):
        raise IllFormed("the slope and the point must be positive")
    if not forms.is_zero(forms.of(minus(substitute(function, name, point), value))):
        raise IllFormed("the value at the point is not the one stated")
    _defined(forms, signs, "the lemma")
    return "the derivative has the sign of x − point, so the minimum is there and only there"
