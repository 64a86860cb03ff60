"""The steps that the error contract is made of: roundings in a row, their sum, contraction, T steps.

P[n] = (1 + u)^n and G[t] = (1 + r)^t are written as products that gain one factor at a time.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.evidence import Obligation

n, t, j, e, f, K, D = symbols("n t j e f K D")
u, d, beta, spare, whole, rate, fresh = symbols(r"u u_d \beta h A r L")
power, growth, error, deficit, total = (IndexedBase(name) for name in ("P", "G", "E", "D", r"\epsilon"))
k, x, y = (IndexedBase(name) for name in ("k", "x", "y"))

no_rounding = Definition("no rounding", power[0], Integer(1))
one_rounding = Definition("one rounding", power[n], (1 + u) * power[n - 1])
no_step = Definition("no step", growth[0], Integer(1))
one_step = Definition("one step", growth[t], (1 + rate) * growth[t - 1])


def in_a_row(relative: Expr = u) -> Obligation:
    """n roundings in a row: ε[n] = (1 + u) ε[n − 1] + u A is ((1 + u)^n − 1) A."""
    goal = Induction("n roundings in a row", n, Integer(0), total[n], (power[n] - 1) * whole)
    start = Definition("exact", total[0], Integer(0))
    base = Chain("no rounding", Setting((start, no_rounding)), total[0])
    base = base.unfold("nothing is lost", goal.rhs.subs(n, 0), "exact", "no rounding")
    more = Definition("one more", total[n], (1 + relative) * total[n - 1] + u * whole)
    setting = Setting((more, goal.hypothesis, one_rounding), instances=({n: 1}, {n: 3}))
    step = Chain("one rounding more", setting, total[n])
    step = step.unfold("errors so far, rounded", more.rhs, "one more")
    step = step.unfold("those before", (1 + u) * power[n - 1] * whole - whole, "induction hypothesis")
    return goal.obligation(base, step.unfold("one factor more", goal.rhs, "one rounding"))


def collected(operations: int = 4) -> Obligation:
    """Reading at the key, then four operations on what is written: their errors telescope."""
    read = (power[D] - 1) * (1 + d)
    written = sum(((1 + u) ** i * u for i in range(4)), Integer(0)) * power[D] * (1 + d)
    chain = Chain("errors of what is written, per unit of it", Setting(instances=({D: 2},)), read + written)
    after = power[D] * (1 + u) ** operations * (1 + d) - (1 + d)
    return chain.rearrange("each is the difference of two products", after).obligation()


def contraction(most: int = 2) -> Obligation:
    """‖x‖² ≥ ‖x − βk(k·x)‖² with room h = 2 − β‖k‖² ≥ 0, for a key of any length."""
    read = Sum(k[e] * x[e], (e, 1, K))
    definitions = (
        Definition("erased", y[e], x[e] - beta * k[e] * Sum(k[f] * x[f], (f, 1, K)), (e,)),
        Definition("room", spare, most - beta * Sum(k[f] ** 2, (f, 1, K))),
    )
    setting = Setting(definitions, nonnegative=(beta, spare), nonempty=(K,), instances=({K: 2}, {K: 3}))
    before, after = Sum(x[e] ** 2, (e, 1, K)), Sum(y[e] ** 2, (e, 1, K))
    chain = Chain("squared length of an error before the erase", setting, before)
    taken = beta * spare * read**2
    chain = chain.unfold("what the erase takes away", after + taken, "erased", "room")
    return chain.drop("it is not negative", after, taken).obligation()


def accumulated(sign: int = 1) -> Obligation:
    """E[t] = (1 + r) E[t − 1] + L from E[0] = 0 is (L/r)((1 + r)^t − 1)."""
    goal = Induction("errors of t steps", t, Integer(0), error[t], fresh / rate * (growth[t] - 1))
    start = Definition("exact start", error[0], Integer(0))
    base = Chain("no step", Setting((start, no_step), nonzero=(rate,)), error[0])
    base = base.unfold("no error", goal.rhs.subs(t, 0), "exact start", "no step")
    more = Definition("step", error[t], (1 + rate) * error[t - 1] + sign * fresh)
    sizes = ({t: 1}, {t: 3})
    setting = Setting((more, goal.hypothesis, one_step), nonzero=(rate,), instances=sizes)
    step = Chain("one step more", setting, error[t]).unfold("what it adds", more.rhs, "step")
    before = fresh / rate * ((1 + rate) * growth[t - 1] - 1)
    step = step.unfold("the steps before", before, "induction hypothesis")
    return goal.obligation(base, step.unfold("one factor more", goal.rhs, "one step"))


def linear(exponent: int = 2) -> Obligation:
    """D[t] = 1 − (1 + r)^t (1 − t r) is a sum of terms that are not negative, so (1 + r)^t ≤ 1/(1 − t r)."""
    term = j * rate**exponent * growth[j - 1]
    goal = Induction("room below 1/(1 − t r)", t, Integer(0), deficit[t], Sum(term, (j, 1, t)))
    room = Definition("room", deficit[t], 1 - growth[t] * (1 - t * rate))
    none = Definition("no room", deficit[0], 1 - growth[0])
    base = Chain("no step", Setting((none, no_step)), deficit[0])
    base = base.unfold("none", goal.rhs.subs(t, 0), "no room", "no step")
    earlier = Definition("room before", deficit[t - 1], 1 - growth[t - 1] * (1 - (t - 1) * rate))
    added = term.subs(j, t)
    sizes = ({t: 1}, {t: 3})
    setting = Setting((room, earlier, one_step, goal.hypothesis), order=((1, t),), instances=sizes)
    step = Chain("one step more", setting, deficit[t])
    step = step.unfold("its room", 1 - (1 + rate) * growth[t - 1] * (1 - t * rate), "room", "one step")
    step = step.unfold("the room before", deficit[t - 1] + added, "room before")
    step = step.unfold("the terms before", goal.rhs.subs(t, t - 1) + added, "induction hypothesis")
    return goal.obligation(base, step.split("it joins them", goal.rhs, t, t - 1))
