"""Chains of steps in pairs: a falsehood or an unjustified step, and the closest honest one."""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from verify.checkers import derivation
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

i, j, k, l, m, n, t = symbols("i j k l m n t")  # noqa: E741
x, y, z = symbols("x y z")
a, b, e, s, w, S, Z = (IndexedBase(name) for name in "abeswSZ")


def proved(obligation: Obligation) -> bool:
    return derivation.judge(obligation).verdict is Verdict.PROVED


def why(obligation: Obligation) -> str:
    return derivation.judge(obligation).detail


def up_to(body: Expr, limit: Expr = n) -> Sum:
    return Sum(body, (j, 1, limit))


def chain(start: Expr, **setting: Any) -> Chain:
    return Chain("a chain", Setting(**setting), start)


EARLIER = Definition("d", w[j, t], x, free=(j, t), guards=((j, t - 1),))

PAIRS: dict[str, tuple[Obligation, Obligation]] = {
    "division by what may vanish": (
        chain(x).rearrange("multiply and divide", (x**2 + x * y) / (x + y)).obligation(),
        chain(x, nonzero=(x + y,)).rearrange("multiply and divide", (x**2 + x * y) / (x + y)).obligation(),
    ),
    "logarithm of what may be negative": (
        chain(log(x * y)).logarithm("product rule", log(x) + log(y)).obligation(),
        chain(log(x * y), positive=(x, y)).logarithm("product rule", log(x) + log(y)).obligation(),
    ),
    "exp of the logarithm of what may be negative": (
        chain(x).rearrange("through the logarithm", exp(log(x, evaluate=False), evaluate=False)).obligation(),
        chain(x, positive=(x,)).rearrange("through it", exp(log(x), evaluate=False)).obligation(),
    ),
    "a sum that may be empty has no positive value": (
        chain(x, positive=(a,)).rearrange("ratio", x * up_to(a[j] * x) / (x * up_to(a[j]))).obligation(),
        chain(x, positive=(a, x), nonempty=(n,))
        .rearrange("ratio", x * up_to(a[j] * x) / (x * up_to(a[j])))
        .obligation(),
    ),
    "a sum with another lower limit may be empty": (
        chain(x, positive=(a,), nonempty=(n,))
        .rearrange("ratio", Sum(a[j] * x, (j, k, n)) / Sum(a[j], (j, k, n)))
        .obligation(),
        chain(x, positive=(a,), nonempty=(n,), order=((k, n),))
        .rearrange("ratio", Sum(a[j] * x, (j, k, n)) / Sum(a[j], (j, k, n)))
        .obligation(),
    ),
    "dropping a term of unknown sign": (
        chain(x + y).drop("drop", x, y).obligation(),
        chain(x + y, nonnegative=(y,)).drop("drop", x, y).obligation(),
    ),
    "dropping a negative square": (
        chain(x - y**2).drop("drop", x, -(y**2)).obligation(),
        chain(x + y**2).drop("drop", x, y**2).obligation(),
    ),
    "dropping a sum because an outer symbol of the bound name is positive": (
        chain(x + Sum(j, (j, -3, n)), positive=(j,)).drop("drop", x, Sum(j, (j, -3, n))).obligation(),
        chain(x + Sum(j**2, (j, -3, n))).drop("drop", x, Sum(j**2, (j, -3, n))).obligation(),
    ),
    "an odd power of what is not known positive": (
        chain(x + y**3).drop("drop", x, y**3).obligation(),
        chain(x + y**3, nonnegative=(y,)).drop("drop", x, y**3).obligation(),
    ),
    "splitting a sum that may be empty": (
        chain(up_to(a[j])).split("cut", up_to(a[j], n - 1) + a[n], n, n - 1).obligation(),
        chain(up_to(a[j]), nonempty=(n,)).split("cut", up_to(a[j], n - 1) + a[n], n, n - 1).obligation(),
    ),
    "cutting outside the range": (
        chain(up_to(a[j]), nonempty=(n,))
        .split("cut", up_to(a[j], m) + Sum(a[j], (j, m + 1, n)), n, m)
        .obligation(),
        chain(up_to(a[j]), order=((0, m), (m, n)))
        .split("cut", up_to(a[j], m) + Sum(a[j], (j, m + 1, n)), n, m)
        .obligation(),
    ),
    "cutting an inner sum by facts on an outer variable of the same name": (
        chain(Sum(up_to(a[j], i), (i, 0, n)), nonempty=(i,))
        .split("cut", Sum(up_to(a[j], i - 1) + a[i], (i, 0, n)), i, i - 1)
        .obligation(),
        chain(up_to(a[j], i), nonempty=(i,)).split("cut", up_to(a[j], i - 1) + a[i], i, i - 1).obligation(),
    ),
    "counting summands that may be fewer than none": (
        chain(Sum(x, (j, m, n))).rearrange("count", x * (n - m + 1)).obligation(),
        chain(Sum(x, (j, m, n)), order=((m, n + 1),)).rearrange("count", x * (n - m + 1)).obligation(),
    ),
    "counting inside a sum with the help of another sum's range": (
        chain(Sum(a[i], (i, m, n)) + Sum(x, (j, m, n)))
        .rearrange("count", Sum(a[i], (i, m, n)) + x * (n - m + 1))
        .obligation(),
        chain(Sum(Sum(x, (j, i, n)), (i, m, n)), order=((m, n + 1),))
        .rearrange("count", Sum(x * (n - i + 1), (i, m, n)))
        .obligation(),
    ),
    "a fixed index of a definition meets a bound one": (
        chain(up_to(Z[j]), definitions=(Definition("d", Z[j], y),), nonempty=(n,))
        .unfold("unfold", n * y, "d")
        .obligation(),
        chain(up_to(Z[j]), definitions=(Definition("d", Z[j], y, free=(j,)),), nonempty=(n,))
        .unfold("unfold", n * y, "d")
        .obligation(),
    ),
    "a bound index captures a fixed one of a definition": (
        chain(up_to(Z[j]), definitions=(Definition("d", Z[t], a[j], free=(t,)),))
        .unfold("unfold", up_to(a[j]), "d")
        .obligation(),
        chain(up_to(Z[j]), definitions=(Definition("d", Z[t], a[i], free=(t,)),), nonempty=(n,))
        .unfold("unfold", n * a[i], "d")
        .obligation(),
    ),
    "a definition of a symbol inside a sum that binds it": (
        chain(up_to(j), definitions=(Definition("d", j, x),), nonempty=(n,))
        .unfold("unfold", n * x, "d")
        .obligation(),
        chain(up_to(y), definitions=(Definition("d", y, x),), nonempty=(n,))
        .unfold("unfold", n * x, "d")
        .obligation(),
    ),
    "a guard that is not met": (
        chain(a[k], definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),))
        .unfold("unfold", x, "d")
        .obligation(),
        chain(a[k], definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),), order=((k, n),))
        .unfold("unfold", x, "d")
        .obligation(),
    ),
    "a guard on the definition's own index, met only by another": (
        chain(w[k, m], definitions=(EARLIER,), order=((k, t - 1),)).unfold("unfold", x, "d").obligation(),
        chain(w[k, m], definitions=(EARLIER,), order=((k, m - 1),)).unfold("unfold", x, "d").obligation(),
    ),
    "a guard met on the range of a sum that reaches too far": (
        chain(
            Sum(a[j], (j, 1, n + 1)),
            definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),),
            order=((0, n),),
        )
        .unfold("unfold", (n + 1) * x, "d")
        .obligation(),
        chain(
            Sum(a[j], (j, 1, n)),
            definitions=(Definition("d", a[j], x, free=(j,), guards=((j, n),)),),
            order=((0, n),),
        )
        .unfold("unfold", n * x, "d")
        .obligation(),
    ),
    "a repeated free index matches different ones": (
        chain(w[j, k], definitions=(Definition("d", w[t, t], x, free=(t,)),))
        .unfold("unfold", x, "d")
        .obligation(),
        chain(w[k, k], definitions=(Definition("d", w[t, t], x, free=(t,)),))
        .unfold("unfold", x, "d")
        .obligation(),
    ),
    "hypothesis with the wrong multiplier": (
        chain(x, hypotheses=(Hypothesis("h", x, y),)).use("use", y, h=2).obligation(),
        chain(x, hypotheses=(Hypothesis("h", x, y),)).use("use", y, h=1).obligation(),
    ),
    "logarithm with a combination that does not fit": (
        chain(x, hypotheses=(Hypothesis("h", exp(x), y),), positive=(y,))
        .logarithm("take it", log(y), uses={"h": 2})
        .obligation(),
        chain(x, hypotheses=(Hypothesis("h", exp(x), y),), positive=(y,))
        .logarithm("take it", log(y), uses={"h": 1})
        .obligation(),
    ),
    "exponentiating without knowing signs": (
        chain(x, hypotheses=(Hypothesis("h", log(x), y),))
        .exponentiate("do", exp(y), uses={"h": 1})
        .obligation(),
        chain(x, hypotheses=(Hypothesis("h", log(x), y),), positive=(x,))
        .exponentiate("do", exp(y), uses={"h": 1})
        .obligation(),
    ),
    "a derivative with an index that may lie outside the sum": (
        chain(up_to(a[j] ** 2)).differentiate("differentiate", 2 * a[k], a[k]).obligation(),
        chain(up_to(a[j] ** 2), order=((1, k), (k, n)))
        .differentiate("differentiate", 2 * a[k], a[k])
        .obligation(),
    ),
    "a derivative in a member that may be the other one": (
        chain(a[k] * a[l]).differentiate("differentiate", a[k], a[l]).obligation(),
        chain(a[k] * a[l], distinct=((k, l),)).differentiate("differentiate", a[k], a[l]).obligation(),
    ),
    "distinct indices of one member say nothing about two members": (
        chain(w[j, k] * x, distinct=((j, k),))
        .differentiate("differentiate", Integer(0), w[1, 2])
        .obligation(),
        chain(w[j, k] * x, distinct=((j, l),))
        .differentiate("differentiate", Integer(0), w[l, k])
        .obligation(),
    ),
    "a derivative that forgets what depends on the variable": (
        chain(log(y), definitions=(Definition("d", y, x**2 + 1),), positive=(y,))
        .differentiate("differentiate", Integer(0), x)
        .obligation(),
        chain(log(y), definitions=(Definition("d", y, exp(x)),), positive=(y,))
        .differentiate("differentiate", Integer(1), x, "d")
        .obligation(),
    ),
    "a derivative that forgets it through two definitions": (
        chain(y, definitions=(Definition("d", y, z), Definition("f", z, x)))
        .differentiate("differentiate", Integer(0), x, "d")
        .obligation(),
        chain(y, definitions=(Definition("d", y, z), Definition("f", z, x)))
        .differentiate("differentiate", Integer(1), x, "d", "f")
        .obligation(),
    ),
    "a derivative of what holds under a hypothesis only": (
        chain(x**2, hypotheses=(Hypothesis("h", x, 1),))
        .use("at 1", Integer(1), h=x + 1)
        .differentiate("differentiate", Integer(0), x)
        .obligation(),
        chain(x**2, hypotheses=(Hypothesis("h", x, 1),))
        .differentiate("differentiate", 2 * x, x)
        .use("at 1", Integer(2), h=2)
        .obligation(),
    ),
    "a derivative in a limit": (
        chain(up_to(a[j])).differentiate("differentiate", Integer(0), n).obligation(),
        chain(up_to(a[j])).differentiate("differentiate", Integer(0), m).obligation(),
    ),
    "a derivative of an inequality": (
        chain(x**2 + y**2).drop("drop", x**2, y**2).differentiate("differentiate", 2 * x, x).obligation(),
        chain(x**2 + y**2).differentiate("differentiate", 2 * x, x).obligation(),
    ),
}
