"""A claim's certificate as text for the terminal."""

import textwrap
from collections.abc import Iterator
from typing import Any


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
    for number, part in enumerate(data["parts"], start=1):
        yield ""
        yield from _wrapped(f"{number}. [{part['word']}] {part['statement']}", width)
        for item in part["evidence"]:
            yield from _evidence(item, width)
    yield ""
    for mutant in data["mutants"]:
        fate = "killed" if mutant["rejected"] else "SURVIVED"
        yield from _wrapped(f"mutant {fate}: {mutant['name']} — {mutant['detail']}", width)
    if data["remark"]:
        yield from _wrapped(f"Remark: {data['remark']}", width)


def _evidence(item: dict[str, Any], width: int) -> Iterator[str]:
    yield from _wrapped(f"{item['label']}  [{item['verdict']}, {item['strength']}]", width, "   ")
    data = item["data"]
    for chain in [data["base"], data["step"]] if "base" in data else [data]:
        if "steps" in chain:
            if "base" in data:
                yield f"     {chain['title']}"
            yield from _wrapped(infix(chain["goal"]["lhs"]), width, "       ")
            for step in chain["steps"]:
                line = f"{step['relation']} {infix(step['after'])}    — {step['label']} ({step['rule']})"
                yield from _wrapped(line, width, "     ")
    for check in item["checks"]:
        said = f"{check['by']} ({check['role']}): {check['verdict']}; {check['detail']}"
        yield from _wrapped(said, width, "     ")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ") or [indent]


def infix(term: list[Any], outer: int = 0) -> str:
    """A formula of a certificate on one line, e.g. ``a[j]*(x + 1)/2``.

    Args:
        term: nested lists; see ``verify.derive.tree``.
        outer: binding strength of what is around it (0 sum, 1 product, 2 power).
    """
    head, *rest = term
    if head == "q":
        return f"({rest[0]})" if outer and not rest[0].isdigit() else rest[0]
    if head == "v":
        return _plain(rest[0])
    if head == "at":
        return f"{_plain(rest[0])}[{','.join(infix(index) for index in rest[1])}]"
    if head in ("exp", "log"):
        return f"{head}({infix(rest[0])})"
    if head == "sum":
        bound, lower, upper, body = rest
        return f"Σ_{{{bound}={infix(lower)}..{infix(upper)}}} {infix(body, 1)}"
    if head == "^":
        return f"{infix(rest[0], 2)}^{rest[1]}" if rest[1] >= 0 else f"(1/{_power(rest[0], -rest[1])})"
    strength = 0 if head == "+" else 1
    separator = " + " if head == "+" else "·"
    text = separator.join(infix(item, strength) for item in rest)
    if head == "+":
        text = text.replace("+ (-1)·", "− ").replace("+ -", "− ")
    return f"({text})" if outer > strength or (outer and head == "+") else text


def _power(base: list[Any], exponent: int) -> str:
    text = infix(base, 2)
    return text if exponent == 1 else f"{text}^{exponent}"


def _plain(name: str) -> str:
    return name.replace("\\", "").replace("{", "").replace("}", "")
