"""e^x >= 1 + x, the one estimate of the exponential these derivations rest on, and bounds on numbers."""

from collections.abc import Mapping

from sympy import Expr, Symbol, exp, log

from derivations.softmax._divergence import tangent
from verify.derive import Chain, Setting
from verify.derive.tree import tree
from verify.model.evidence import Obligation

x = Symbol("x")


def tangent_of_exp() -> tuple[Obligation, ...]:
    """e^x − 1 − x >= 0 for every real x: it is y − 1 − ln y at y = e^x."""
    chain = Chain("e^x − 1 − x is y − 1 − ln y at y = e^x", Setting(), exp(x) - 1 - log(exp(x)))
    return tangent(), chain.rearrange("ln e^x = x", exp(x) - 1 - x).obligation()


def number(
    label: str,
    term: Expr,
    values: Mapping[Symbol, str],
    *,
    above: str | None = None,
    below: str | None = None,
) -> Obligation:
    """The obligation that an explicit number lies strictly above, below or between rationals."""
    bounds = {side: bound for side, bound in (("above", above), ("below", below)) if bound is not None}
    named = {symbol.name: value for symbol, value in values.items()}
    return Obligation("inequality", label, "B", {"term": tree(term), "values": named, **bounds})
