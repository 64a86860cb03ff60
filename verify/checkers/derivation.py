"""Re-check derivations: every step on its own, and that the steps join up to the goal.

Trusted here: the normal form of ``normal_form.py``, the derivative of ``terms.py``, the signs of
``signs.py``, and three facts of calculus: exp is injective, a function on x > 0 whose derivative has the
sign of x − a has its only minimum at a, and induction over the integers.
"""

from typing import Any

from verify.checkers.normal_form import NormalForm, key
from verify.checkers.rewriting import combination, split, unfold
from verify.checkers.signs import Signs
from verify.checkers.terms import IllFormed, Term, derivative, minus, plus, read, substitute
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "step checker"
KINDS = frozenset({"derivation", "induction", "minimum"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when every step follows, ``undecided`` naming the first that does not."""
    check = {"derivation": _derivation, "induction": _induction, "minimum": _minimum}[obligation.kind]
    try:
        detail = check(dict(obligation.data))
    except IllFormed as problem:
        return Check(NAME, "checker", Verdict.UNDECIDED, str(problem))
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        return Check(NAME, "checker", Verdict.UNDECIDED, f"malformed derivation: {problem!r}")
    return Check(NAME, "checker", Verdict.PROVED, detail)


def _derivation(data: dict[str, Any]) -> str:
    before = read(data["goal"]["lhs"])
    relation = "="
    for number, step in enumerate(data["steps"], start=1):
        if read(step["before"]) != before:
            raise IllFormed(f"step {number} ({step['label']}) does not start where the last one ended")
        _step(step, data["setting"], number)
        before = read(step["after"])
        relation = ">=" if step["relation"] == ">=" else relation
    if before != read(data["goal"]["rhs"]) or relation != data["goal"]["relation"]:
        raise IllFormed("the steps do not end at the goal")
    return f"{len(data['steps'])} steps, each followed on its own"


def _step(step: dict[str, Any], setting: dict[str, Any], number: int) -> None:
    where = f"step {number} ({step['label']})"
    definitions = {item["name"]: item for item in setting["definitions"]}
    before, after = read(step["before"]), read(step["after"])
    _rule_fits(step, where)
    for limit, at in step["splits"]:
        _cut_inside(read(limit), read(at), setting, where)
        before, after = (split(side, read(limit), read(at)) for side in (before, after))
    for name in step["unfold"]:
        if name not in definitions:
            raise IllFormed(f"{where} unfolds {name!r}, which is not defined")
        before = unfold(before, definitions[name])
        after = unfold(after, definitions[name])
    distinct = frozenset(frozenset(pair) for pair in setting["distinct"])
    if step["rule"] == "differentiate":
        before = derivative(before, read(step["variable"]), distinct)
    elif step["rule"] == "logarithm":
        before, after = ("exp", before), ("exp", after)
    forms = NormalForm()
    signs = Signs(forms, setting)
    dropped = plus(*(read(term) for term in step["terms"]))
    combined = combination(step["uses"], {item["name"]: item for item in setting["hypotheses"]})
    rest = forms.of(minus(before, plus(after, dropped, combined)))
    if not forms.is_zero(rest):
        raise IllFormed(f"{where}: before − after does not reduce to zero, but to {key(rest)[:200]}")
    _side_conditions(step, forms, signs, where)


_PARAMETERS = {
    "rearrange": set(),
    "unfold": {"unfold"},
    "split sum": {"splits", "unfold"},
    "use hypothesis": {"uses"},
    "logarithm": {"unfold"},
    "differentiate": {"unfold", "variable"},
    "drop non-negative terms": {"terms", "unfold"},
}


def _rule_fits(step: dict[str, Any], where: str) -> None:
    """A rule may use no more than its name says."""
    used = {name for name in ("unfold", "splits", "uses", "variable", "terms") if step[name]}
    extra = used - _PARAMETERS.get(step["rule"], set())
    if step["rule"] not in _PARAMETERS or extra:
        raise IllFormed(f"{where}: the rule {step['rule']!r} does not allow {sorted(extra) or 'anything'}")
    if (step["relation"] == ">=") != (step["rule"] == "drop non-negative terms"):
        raise IllFormed(f"{where}: the relation {step['relation']} does not fit the rule {step['rule']}")


def _cut_inside(limit: Term, at: Term, setting: dict[str, Any], where: str) -> None:
    forms = NormalForm()
    if forms.of(minus(limit, at)) != {(): 1}:
        raise IllFormed(f"{where}: only the last term of a sum can be split off")
    if key(forms.of(limit)) not in {key(forms.of(read(item))) for item in setting["nonempty"]}:
        raise IllFormed(f"{where}: nothing says that the sums up to {limit} are not empty")


def _side_conditions(step: dict[str, Any], forms: NormalForm, signs: Signs, where: str) -> None:
    for term in step["terms"]:
        if not signs.term_nonnegative(read(term)):
            raise IllFormed(f"{where}: nothing says that the dropped term {term} is >= 0")
    for divisor in forms.inverted:
        if not signs.is_nonzero(divisor):
            raise IllFormed(f"{where}: nothing says that {key(divisor)} is not zero")
    for argument in forms.logged:
        if not signs.positive(argument):
            raise IllFormed(f"{where}: nothing says that {key(argument)}, inside a logarithm, is positive")


def _induction(data: dict[str, Any]) -> str:
    variable, lhs, rhs = data["variable"], read(data["lhs"]), read(data["rhs"])
    earlier = minus(("v", variable), ("q", "1"))
    _same_goal(data["base"], *(substitute(side, variable, read(data["first"])) for side in (lhs, rhs)))
    _same_goal(data["step"], lhs, rhs)
    hypotheses = [d for d in data["step"]["setting"]["definitions"] if d["name"] == "induction hypothesis"]
    if any(d["name"] == "induction hypothesis" for d in data["base"]["setting"]["definitions"]):
        raise IllFormed("the base case assumes the induction hypothesis")
    for found in hypotheses:
        _same(read(found["lhs"]), substitute(lhs, variable, earlier), "the induction hypothesis")
        _same(read(found["rhs"]), substitute(rhs, variable, earlier), "the induction hypothesis")
        if variable in found["free"] or found["free"] != data["free"]:
            raise IllFormed("the induction hypothesis is assumed for more indices than the goal has")
    return f"base: {_derivation(data['base'])}; step: {_derivation(data['step'])}"


def _same_goal(chain: dict[str, Any], lhs: Term, rhs: Term) -> None:
    if chain["goal"]["relation"] != "=":
        raise IllFormed("an induction needs equations")
    _same(read(chain["goal"]["lhs"]), lhs, f"the start of «{chain['title']}»")
    _same(read(chain["goal"]["rhs"]), rhs, f"the end of «{chain['title']}»")


def _same(one: Term, other: Term, what: str) -> None:
    forms = NormalForm()
    if not forms.is_zero(forms.of(minus(one, other))):
        raise IllFormed(f"{what} is not what the induction needs")


def _minimum(data: dict[str, Any]) -> str:
    name = data["variable"]
    setting: dict[str, Any] = {"positive": [name], "nonnegative": [], "nonzero": [], "nonempty": []}
    function, point, slope = (read(data[part]) for part in ("function", "point", "slope"))
    forms = NormalForm()
    signs = Signs(forms, setting)
    change = derivative(function, ("v", name), frozenset())
    factored = ("*", minus(("v", name), point), slope)
    if not forms.is_zero(forms.of(minus(change, factored))):
        raise IllFormed("the derivative is not (x − point) · slope")
    if not signs.positive(forms.of(slope)) or not signs.positive(forms.of(point)):
        raise IllFormed("the slope and the point must be positive")
    if not forms.is_zero(forms.of(minus(substitute(function, name, point), read(data["value"])))):
        raise IllFormed("the value at the point is not the one stated")
    for divisor in forms.inverted:
        if not signs.is_nonzero(divisor):
            raise IllFormed(f"nothing says that {key(divisor)} is not zero")
    return "the derivative has the sign of x − point, so the minimum is there and only there"
