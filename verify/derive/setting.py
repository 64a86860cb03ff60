"""What a derivation may use: definitions to unfold, hypotheses, and what is known about signs."""

from dataclasses import dataclass
from typing import Any

from sympy import Expr, IndexedBase, Symbol, latex

from verify.derive.tree import tree


@dataclass(frozen=True)
class Definition:
    """``lhs = rhs`` for all values of the free indices; steps replace the left side by the right.

    Attributes:
        name: how steps refer to it.
        lhs: a symbol or a member of a family, e.g. ``Z[t]``.
        rhs: what it stands for.
        free: indices that may take any value; every other name means the one outside all sums.
        guards: pairs (free index, bound): only for index values at most the bound, which may use other
            free indices.
    """

    name: str
    lhs: Expr
    rhs: Expr
    free: tuple[Symbol, ...] = ()
    guards: tuple[tuple[Symbol, Expr], ...] = ()

    def data(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "name": self.name,
            "lhs": tree(self.lhs),
            "rhs": tree(self.rhs),
            "free": [index.name for index in self.free],
            "guards": [[index.name, tree(bound)] for index, bound in self.guards],
            "latex": f"{latex(self.lhs)} = {latex(self.rhs)}",
        }


@dataclass(frozen=True)
class Hypothesis:
    """An equation that is assumed; steps use it with an explicit multiplier."""

    name: str
    lhs: Expr
    rhs: Expr

    def data(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "name": self.name,
            "lhs": tree(self.lhs),
            "rhs": tree(self.rhs),
            "latex": f"{latex(self.lhs)} = {latex(self.rhs)}",
        }


@dataclass(frozen=True)
class Setting:
    """Everything the steps of a derivation may rely on.

    Attributes:
        definitions: equations to unfold.
        hypotheses: equations assumed.
        positive: symbols and families all of whose values are > 0.
        nonnegative: symbols and families all of whose values are >= 0.
        nonzero: expressions that do not vanish.
        nonempty: integers that are at least 1, e.g. ``n`` for sums from 1 to n.
        order: pairs a <= b of integer expressions, e.g. ``(1, k), (k, n)`` for an index k of a sum to n.
        distinct: pairs of index symbols that denote different members.
        instances: values of the sizes and indices at which engines write the sums out,
            e.g. ``{n: 3, k: 2}``.
    """

    definitions: tuple[Definition, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    positive: tuple[Symbol | IndexedBase, ...] = ()
    nonnegative: tuple[Symbol | IndexedBase, ...] = ()
    nonzero: tuple[Expr, ...] = ()
    nonempty: tuple[Expr, ...] = ()
    order: tuple[tuple[Expr | int, Expr | int], ...] = ()
    distinct: tuple[tuple[Symbol, Symbol], ...] = ()
    instances: tuple[dict[Symbol, int], ...] = ({},)

    def data(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "definitions": [definition.data() for definition in self.definitions],
            "hypotheses": [hypothesis.data() for hypothesis in self.hypotheses],
            "positive": [str(name) for name in self.positive],
            "nonnegative": [str(name) for name in self.nonnegative],
            "nonzero": [tree(item) for item in self.nonzero],
            "nonempty": [tree(limit) for limit in self.nonempty],
            "order": [[tree(low), tree(high)] for low, high in self.order],
            "distinct": [[one.name, other.name] for one, other in self.distinct],
            "instances": [{symbol.name: value for symbol, value in item.items()} for item in self.instances],
        }
