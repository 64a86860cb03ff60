"""Obligations as readers see them: derivations as numbered steps, queries as text, witnesses as tables."""

from dataclasses import dataclass
from typing import Any, TypeGuard

from verify.report import terms


@dataclass(frozen=True)
class Note:
    """Something a step or a derivation relies on: what it is, in words, and its formula."""

    text: str
    latex: str = ""


@dataclass(frozen=True)
class StepView:
    """One line of a derivation; ``before`` is set only where it is not the line above."""

    label: str
    rule: str
    sign: str
    latex: str
    notes: tuple[Note, ...]
    before: str = ""


@dataclass(frozen=True)
class ChainView:
    """A derivation: what is shown, what it may use, and its lines."""

    title: str
    goal: str
    start: str
    steps: tuple[StepView, ...]
    given: tuple[Note, ...]


@dataclass(frozen=True)
class Body:
    """The content of an obligation.

    Attributes:
        goal: LaTeX of what is shown, when it is one formula.
        chains: headings and derivations.
        text: SMT-LIB or other source text, with its heading.
        rest: everything else, by name.
    """

    goal: str
    chains: tuple[tuple[str, ChainView], ...]
    text: tuple[tuple[str, str], ...]
    rest: dict[str, Any]


def steps(data: dict[str, Any]) -> int:
    """Number of derivation steps in an obligation's data."""
    return sum(len(item["steps"]) for item in (data, data.get("base"), data.get("step")) if _is_chain(item))


def body(kind: str, data: dict[str, Any]) -> Body:
    """An obligation's data, sorted into what readers see."""
    if kind == "derivation" and _is_chain(data):
        return Body(data["goal"]["latex"], (("", chain(data)),), (), {})
    if kind == "induction" and _is_chain(data.get("base")) and _is_chain(data.get("step")):
        shown = (
            (f"Base: {data['variable']} = {_plain(data['first'])}", chain(data["base"])),
            (f"Step: from {data['variable']} − 1 to {data['variable']}", chain(data["step"])),
        )
        free = {"for all values of": ", ".join(data["free"])} if data["free"] else {}
        return Body(data["latex"], shown, (), free)
    goal = data["latex"] if isinstance(data.get("latex"), str) else ""
    text = tuple((name, value) for name, value in data.items() if isinstance(value, str) and "\n" in value)
    hidden = {"latex", "title", *(name for name, _ in text)}
    return Body(goal, (), text, {name: value for name, value in data.items() if name not in hidden})


def chain(data: dict[str, Any]) -> ChainView:
    """A chain of steps."""
    setting = data["setting"]
    known = {item["name"]: item["latex"] for item in (*setting["definitions"], *setting["hypotheses"])}
    above, rows = None, []
    for step in data["steps"]:
        before = "" if above in (None, step["before"]) else step["latex"]["before"]
        rows.append(_step(step, known, before))
        above = step["after"]
    start = data["steps"][0]["latex"]["before"] if data["steps"] else terms.latex(data["goal"]["lhs"])
    return ChainView(data["title"], data["goal"]["latex"], start, tuple(rows), _given(setting))


def _is_chain(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and {"title", "goal", "setting", "steps"} <= value.keys()


def _step(step: dict[str, Any], known: dict[str, str], before: str) -> StepView:
    notes = [Note(f"unfolds «{name}»", known.get(name, "")) for name in step["unfold"]]
    for limit, index in step["splits"]:
        notes.append(Note("cuts sums", rf"\text{{up to }} {_tex(limit)} \text{{ after }} {_tex(index)}"))
    for name, multiplier in step["uses"]:
        notes += [Note(f"uses «{name}»", known.get(name, "")), Note("multiplied by", _tex(multiplier))]
    notes.extend(Note("drops a term that is ≥ 0", _tex(term)) for term in step["terms"])
    sign = r"\ge" if step["relation"] == ">=" else "="
    if step["variable"] is not None:
        sign = rf"\frac{{\partial}}{{\partial {_tex(step['variable'])}}}\left[\,\cdot\,\right] ="
    return StepView(step["label"], step["rule"], sign, step["latex"]["after"], tuple(notes), before)


def _given(setting: dict[str, Any]) -> tuple[Note, ...]:
    notes = [_equation("definition", item) for item in setting["definitions"]]
    notes += [_equation("hypothesis", item) for item in setting["hypotheses"]]
    for name, sign in (("positive", ">"), ("nonnegative", r"\ge")):
        if setting[name]:
            letters = ", ".join(terms.name_latex(item) for item in setting[name])
            notes.append(Note("sign", f"{letters} {sign} 0"))
    notes += [Note("does not vanish", rf"{_tex(item)} \ne 0") for item in setting["nonzero"]]
    notes += [Note("size", rf"{_tex(limit)} \ge 1") for limit in setting["nonempty"]]
    notes += [Note("order", rf"{_tex(one)} \le {_tex(other)}") for one, other in setting["order"]]
    notes += [
        Note("different members", rf"{terms.name_latex(one)} \ne {terms.name_latex(other)}")
        for one, other in setting["distinct"]
    ]
    return tuple(notes)


def _equation(kind: str, item: dict[str, Any]) -> Note:
    free = [terms.name_latex(name) for name in item.get("free", [])]
    guards = [rf"{terms.name_latex(name)} \le {_tex(bound)}" for name, bound in item.get("guards", [])]
    reach = rf"\quad \text{{for all }} {', '.join(free)}" if free else ""
    limits = rf"\text{{ with }} {', '.join(guards)}" if guards else ""
    return Note(f"{kind} «{item['name']}»", item["latex"] + reach + limits)


def _tex(term: Any) -> str:
    return terms.latex(term) if terms.is_term(term) else rf"\text{{{term}}}"


def _plain(term: Any) -> str:
    return str(term[1]) if terms.is_term(term) and term[0] in ("q", "v") else str(term)
