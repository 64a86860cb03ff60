"""A claim's certificate as text for the terminal."""

import textwrap
from collections.abc import Iterator
from typing import Any

from verify.report import counterexample


def claim(data: dict[str, Any], width: int = 100) -> str:
    """The whole certificate, readable: statement, hypotheses, parts with their steps, mutants."""
    return "\n".join(_claim(data, min(max(width, 40), 120)))


def _claim(data: dict[str, Any], width: int) -> Iterator[str]:
    yield f"{data['id']} — {data['title']}"
    yield f"{data['verdict']}; strength reached {data['reached']} of {data['asked']} asked; {data['source']}"
    yield ""
    yield from _wrapped(data["statement"], width)
    yield from _wrapped(f"Scope: {data['scope']}", width)
    for variable in data["variables"]:
        yield f"  {variable['latex']} ∈ {variable['domain']}"
    for assumption in data["assumptions"]:
        mark = "cited" if assumption["cited"] else "assumed"
        yield from _wrapped(f"{mark}: {assumption['text']}", width, "  ")
    if "counterexample" in data:
        yield ""
        yield from _counterexample(data, width)
    for number, part in enumerate(data["parts"], start=1):
        yield ""
        yield from _wrapped(f"{number}. [{part['word']}] {part['statement']}", width)
        for item in part["evidence"]:
            yield from _evidence(item, width)
    yield from _kernel(data["kernel"], width) if "kernel" in data else ()
    yield ""
    for mutant in data["mutants"]:
        fate = "killed" if mutant["rejected"] else "SURVIVED"
        yield from _wrapped(f"mutant {fate}: {mutant['name']} — {mutant['detail']}", width)
    if data["remark"]:
        yield from _wrapped(f"Remark: {data['remark']}", width)


def _counterexample(data: dict[str, Any], width: int) -> Iterator[str]:
    """What fails, why one would believe it, and the rest of the record."""
    for heading, text in counterexample.lines(data):
        yield from _wrapped(f"{heading}: {text}", width)


def _kernel(item: dict[str, Any], width: int) -> Iterator[str]:
    yield ""
    stated = item["data"]
    yield from _wrapped(f"Coq: [{item['verdict']}] {stated['statement']} states {stated['covers']}", width)
    yield from _wrapped(f"premises: {'; '.join(stated['premises']) or 'none'}", width, "   ")
    for check in item["checks"]:
        said = f"{check['by']} ({check['role']}): {check['verdict']}; {check['detail']}"
        yield from _wrapped(said, width, "   ")


def _evidence(item: dict[str, Any], width: int) -> Iterator[str]:
    yield from _wrapped(f"{item['label']}  [{item['verdict']}, {item['strength']}]", width, "   ")
    data = item["data"]
    for chain in [data["base"], data["step"]] if "base" in data else [data]:
        if "steps" in chain:
            if "base" in data:
                yield f"     {chain['title']}"
            yield from _given(chain["setting"], width)
            yield from _wrapped(infix(chain["goal"]["lhs"]), width, "       ")
            for step in chain["steps"]:
                line = f"{step['relation']} {infix(step['after'])}    — {step['label']} ({step['rule']})"
                yield from _wrapped(line, width, "     ")
    for check in item["checks"]:
        said = f"{check['by']} ({check['role']}): {check['verdict']}; {check['detail']}"
        yield from _wrapped(said, width, "     ")


def _given(setting: dict[str, Any], width: int) -> Iterator[str]:
    """What the steps may use: definitions, hypotheses, signs, order of indices."""
    for item in setting["definitions"]:
        yield from _wrapped(
            f"where {infix(item['lhs'])} = {infix(item['rhs'])}  ({item['name']})", width, "       "
        )
    for item in setting["hypotheses"]:
        yield from _wrapped(
            f"given {infix(item['lhs'])} = {infix(item['rhs'])}  ({item['name']})", width, "       "
        )
    facts = [f"{_plain(name)} > 0" for name in setting["positive"]]
    facts += [f"{_plain(name)} ≥ 0" for name in setting["nonnegative"]]
    facts += [f"{infix(term)} ≠ 0" for term in setting["nonzero"]]
    facts += [f"{infix(limit)} ≥ 1" for limit in setting["nonempty"]]
    facts += [f"{infix(low)} ≤ {infix(high)}" for low, high in setting["order"]]
    facts += [f"{_plain(one)} ≠ {_plain(other)}" for one, other in setting["distinct"]]
    if facts:
        yield from _wrapped(f"given {', '.join(facts)}", width, "       ")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ") or [indent]


def infix(term: list[Any], outer: int = 0) -> str:
    """A formula of a certificate on one line, e.g. ``a[j]·(x + 1)/2``.

    Args:
        term: nested lists; see ``verify.derive.tree``.
        outer: binding strength of what is around it (0 sum, 1 product, 2 quotient or power).
    """
    head, *rest = term
    if head == "q":
        return f"({rest[0]})" if outer and not rest[0].isdigit() else str(rest[0])
    if head == "v":
        plain = _plain(rest[0])
        return f"({plain})" if outer > 1 and "^" in plain else plain
    if head == "at":
        return f"{_plain(rest[0])}[{','.join(infix(index) for index in rest[1])}]"
    if head in ("exp", "log"):
        return f"{head}({infix(rest[0])})"
    if head == "sum":
        bound, lower, upper, body = rest
        text = f"Σ_{{{bound}={infix(lower)}..{infix(upper)}}} {infix(body, 1)}"
        return f"({text})" if outer else text
    if head == "+":
        return _sum(rest, outer)
    return _product([term] if head == "^" else rest, outer)


def _sum(items: list[Any], outer: int) -> str:
    """What is added before what is taken away, numbers last: ``t − 1``."""
    ordered = sorted(items, key=lambda item: (_negative(item), item[0] == "q"))
    parts: list[str] = []
    for item in ordered:
        text = infix(_negated(item) if _negative(item) else item, 1 if item[0] == "sum" else 0)
        sign = "−" if _negative(item) else "+"
        parts.append(f" {sign} {text}" if parts else f"−{text}" if sign == "−" else text)
    return f"({''.join(parts)})" if outer else "".join(parts)


def _negative(term: list[Any]) -> bool:
    first = term[1] if term[0] == "*" else term
    return bool(first[0] == "q" and first[1].startswith("-"))


def _negated(term: list[Any]) -> list[Any]:
    if term[0] == "q":
        return ["q", term[1].removeprefix("-")]
    first = _negated(term[1])
    rest = term[2:] if first == ["q", "1"] else [first, *term[2:]]
    return ["*", *rest] if len(rest) > 1 else rest[0]


def _product(items: list[Any], outer: int) -> str:
    """Powers below zero go under a fraction bar."""
    if _negative(["*", *items]):
        text = f"−{_product(_factors(_negated(['*', *items])), 2)}"
        return f"({text})" if outer else text
    below = [["^", item[1], -item[2]] for item in items if item[0] == "^" and item[2] < 0]
    above = [item for item in items if item[0] != "^" or item[2] >= 0]
    top = "·".join(_factor(item) for item in above) or "1"
    if not below:
        return f"({top})" if outer > 1 and len(above) > 1 else top
    bottom = "·".join(_factor(item) for item in below)
    text = f"{top}/({bottom})" if len(below) > 1 else f"{top}/{bottom}"
    return f"({text})" if outer > 1 else text


def _factors(term: list[Any]) -> list[Any]:
    return term[1:] if term[0] == "*" else [term]


def _factor(term: list[Any]) -> str:
    if term[0] == "^":
        base = infix(term[1], 2)
        return base if term[2] == 1 else f"{base}^{term[2]}"
    return infix(term, 2 if term[0] == "*" else 1)


def _plain(name: str) -> str:
    return name.replace("\\", "").replace("{", "").replace("}", "")
