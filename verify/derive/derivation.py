"""The derivation language: chains of named steps and inductions, turned into obligations."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from sympy import Expr, Indexed, Symbol, latex, sympify

from verify.derive.setting import Definition, Setting
from verify.derive.tree import tree
from verify.model.evidence import Obligation


class Rule(StrEnum):
    """Why the formula after a step equals (or is at most) the one before. Each is checked on its own."""

    REARRANGE = "rearrange"
    """Arithmetic of rational expressions, exponential laws, linearity and exchange of finite sums."""
    UNFOLD = "unfold"
    """Definitions replaced by what they stand for (then rearranged)."""
    SPLIT_SUM = "split sum"
    """A sum cut in two at an index (then rearranged)."""
    USE_HYPOTHESIS = "use hypothesis"
    """Before minus after is a stated combination of assumed equations."""
    LOGARITHM = "logarithm"
    """Both sides have the same exponential (up to a stated combination of assumed equations)."""
    EXPONENTIATE = "exponentiate"
    """Both sides, which are positive, have the same logarithm (up to a stated combination of equations)."""
    DIFFERENTIATE = "differentiate"
    """After is the derivative of before in the stated variable."""
    DROP_NONNEGATIVE = "drop non-negative terms"
    """Before minus after is the stated sum of terms that are >= 0: before >= after."""


Multipliers = Mapping[str, Expr | int]
"""What each hypothesis, by name, is multiplied by."""


def _uses(multipliers: Multipliers | None) -> tuple[tuple[str, Expr], ...]:
    return tuple((name, sympify(value)) for name, value in (multipliers or {}).items())


@dataclass(frozen=True)
class Step:
    """One step of a chain.

    Attributes:
        label: what happens, in plain words.
        rule: why it is allowed.
        after: the formula after the step.
        unfold: names of definitions to unfold, once each, in this order.
        splits: pairs (upper limit, index): sums up to the limit are cut after the index.
        uses: pairs (hypothesis name, multiplier).
        variable: what is differentiated by.
        terms: the terms that are dropped.
    """

    label: str
    rule: Rule
    after: Expr
    unfold: tuple[str, ...] = ()
    splits: tuple[tuple[Expr, Expr], ...] = ()
    uses: tuple[tuple[str, Expr], ...] = ()
    variable: Expr | None = None
    terms: tuple[Expr, ...] = ()

    def data(self, before: Expr) -> dict[str, Any]:
        """JSON form, with the formula before the step."""
        return {
            "label": self.label,
            "rule": str(self.rule),
            "before": tree(before),
            "after": tree(self.after),
            "relation": ">=" if self.rule is Rule.DROP_NONNEGATIVE else "=",
            "unfold": list(self.unfold),
            "splits": [[tree(limit), tree(index)] for limit, index in self.splits],
            "uses": [[name, tree(multiplier)] for name, multiplier in self.uses],
            "variable": None if self.variable is None else tree(self.variable),
            "terms": [tree(term) for term in self.terms],
            "latex": {"before": latex(before), "after": latex(self.after)},
        }


@dataclass(frozen=True)
class Chain:
    """A goal ``start = …`` reached by steps, each formula following from the one before.

    With differentiating steps, the goal is an equation for the derivatives of ``start``.

    Attributes:
        title: what is derived, in plain words.
        setting: what the steps may use.
        start: the first formula.
        steps: the steps so far.
    """

    title: str
    setting: Setting
    start: Expr
    steps: tuple[Step, ...] = ()

    @property
    def end(self) -> Expr:
        """The formula after the last step."""
        return self.steps[-1].after if self.steps else sympify(self.start)

    def _with(self, step: Step) -> Self:
        return replace(self, steps=(*self.steps, step))

    def rearrange(self, label: str, after: Expr) -> Self:
        """A step by arithmetic, exponential laws and linearity of finite sums."""
        return self._with(Step(label, Rule.REARRANGE, sympify(after)))

    def unfold(self, label: str, after: Expr, *names: str) -> Self:
        """A step that replaces the named definitions."""
        return self._with(Step(label, Rule.UNFOLD, sympify(after), unfold=names))

    def split(self, label: str, after: Expr, limit: Expr, at: Expr, *names: str) -> Self:
        """A step that cuts every sum up to ``limit`` after index ``at`` (and may unfold definitions)."""
        return self._with(Step(label, Rule.SPLIT_SUM, sympify(after), unfold=names, splits=((limit, at),)))

    def use(self, label: str, after: Expr, **multipliers: Expr) -> Self:
        """A step by hypotheses: before − after is the sum of multiplier · (lhs − rhs)."""
        return self._with(Step(label, Rule.USE_HYPOTHESIS, sympify(after), uses=_uses(multipliers)))

    def logarithm(self, label: str, after: Expr, *names: str, uses: Multipliers | None = None) -> Self:
        """A step whose two sides have the same exponential: exp(before) − exp(after) is a combination."""
        step = Step(label, Rule.LOGARITHM, sympify(after), unfold=names, uses=_uses(uses))
        return self._with(step)

    def exponentiate(self, label: str, after: Expr, *names: str, uses: Multipliers | None = None) -> Self:
        """A step whose two sides have the same logarithm: log(before) − log(after) is a combination."""
        step = Step(label, Rule.EXPONENTIATE, sympify(after), unfold=names, uses=_uses(uses))
        return self._with(step)

    def differentiate(self, label: str, after: Expr, variable: Symbol | Indexed, *names: str) -> Self:
        """A step from a function to its derivative (definitions are unfolded first)."""
        step = Step(label, Rule.DIFFERENTIATE, sympify(after), unfold=names, variable=variable)
        return self._with(step)

    def drop(self, label: str, after: Expr, *terms: Expr, unfold: tuple[str, ...] = ()) -> Self:
        """A step to something smaller: before − after is the sum of the stated non-negative terms."""
        step = Step(label, Rule.DROP_NONNEGATIVE, sympify(after), unfold=unfold, terms=terms)
        return self._with(step)

    def data(self) -> dict[str, Any]:
        """JSON form."""
        before, rows = sympify(self.start), []
        for step in self.steps:
            rows.append(step.data(before))
            before = step.after
        relation = ">=" if any(row["relation"] == ">=" for row in rows) else "="
        sign = r"\ge" if relation == ">=" else "="
        variables = [step.variable for step in self.steps if step.variable is not None]
        by = "".join(rf"\frac{{\partial}}{{\partial {latex(variable)}}} " for variable in reversed(variables))
        lhs = rf"{by}\left[ {latex(self.start)} \right]" if by else latex(self.start)
        return {
            "title": self.title,
            "setting": self.setting.data(),
            "goal": {
                "lhs": tree(self.start),
                "relation": relation,
                "rhs": tree(self.end),
                "derivatives": [tree(variable) for variable in variables],
                "latex": f"{lhs} {sign} {latex(self.end)}",
            },
            "steps": rows,
        }

    def obligation(self) -> Obligation:
        """The chain as an obligation of kind ``derivation``."""
        return Obligation("derivation", self.title, "C", self.data())


@dataclass(frozen=True)
class Induction:
    """``lhs = rhs`` for every value of ``variable`` from ``first`` on, by a base and a step chain.

    The step chain may unfold the definition named ``induction hypothesis``, which is the goal at
    ``variable − 1`` for all values of the ``free`` indices.
    """

    title: str
    variable: Symbol
    first: Expr
    lhs: Indexed
    rhs: Expr
    free: tuple[Symbol, ...] = ()

    @property
    def hypothesis(self) -> Definition:
        """The goal one step earlier, for the step chain's setting."""
        earlier = self.variable - 1
        return Definition(
            "induction hypothesis",
            self.lhs.subs(self.variable, earlier),
            self.rhs.subs(self.variable, earlier),
            self.free,
        )

    def obligation(self, base: Chain, step: Chain) -> Obligation:
        """The induction as an obligation of kind ``induction``."""
        data = {
            "title": self.title,
            "variable": self.variable.name,
            "first": tree(self.first),
            "lhs": tree(self.lhs),
            "rhs": tree(self.rhs),
            "free": [index.name for index in self.free],
            "latex": f"{latex(self.lhs)} = {latex(self.rhs)}",
            "base": base.data(),
            "step": step.data(),
        }
        return Obligation("induction", self.title, "C", data)


@dataclass(frozen=True)
class Minimum:
    """``f(x) >= f(point)`` for x > 0, with equality at ``point`` only, by the sign of the derivative.

    Attributes:
        title: what is shown.
        variable: x.
        function: f, differentiable on x > 0.
        point: where the minimum is; > 0.
        value: f(point).
        slope: a factor w with f′(x) = (x − point)·w and w > 0 for x > 0.
    """

    title: str
    variable: Symbol
    function: Expr
    point: Expr
    value: Expr
    slope: Expr

    def obligation(self) -> Obligation:
        """The lemma as an obligation of kind ``minimum``."""
        data = {
            "title": self.title,
            "variable": self.variable.name,
            "function": tree(self.function),
            "point": tree(self.point),
            "value": tree(self.value),
            "slope": tree(self.slope),
            "latex": rf"{latex(self.function)} \ge {latex(self.value)} \quad ({latex(self.variable)} > 0)",
        }
        return Obligation("minimum", self.title, "C", data)
