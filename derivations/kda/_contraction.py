"""A KDA step never lengthens a vector by more than its largest decay: one step, and any number of them.

w[t] is what the step of token t makes of w[t − 1]: α_t ⊙ w[t − 1] − β_t k_t (k_tᵀ(α_t ⊙ w[t − 1])), with unit
k_t, 0 ≤ β_t ≤ 2 and 0 ≤ α_t ≤ a_t in every channel, for any cap a_t. Written with the room that is left,
b_t = 2 − β_t and h_t = a_t − α_t, which are at least 0.
"""

from typing import Any

from sympy import Expr, IndexedBase, Rational, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.model.evidence import Obligation

i, j, t, e, f, K = symbols("i j t e f K")
k, w, q = (IndexedBase(name) for name in ("k", "w", "q"))
alpha, cap, room, beta, slack = (IndexedBase(name) for name in (r"\alpha", "a", "h", r"\beta", "b"))
norm, shed = IndexedBase("N"), IndexedBase("R")

SIZES: tuple[dict[Any, int], ...] = ({K: 2, t: 1, e: 1}, {K: 3, t: 2, e: 2})


def channels(summand: Expr) -> Sum:
    """Σ over the K channels e."""
    return Sum(summand, (e, 1, K))


read_back = channels(k[t, e] * alpha[t, e] * w[t - 1, e])
stepped = alpha[t, e] * w[t - 1, e] - beta[t] * k[t, e] * Sum(k[t, f] * alpha[t, f] * w[t - 1, f], (f, 1, K))
unit = Hypothesis("unit key", channels(k[t, e] ** 2), 1)


def one_step(largest: Expr = cap[t], most: int = 2) -> Obligation:
    """a_t²‖w[t − 1]‖² ≥ ‖w[t]‖²; ``most`` is the largest β allowed (true for 2)."""
    definitions = (
        Definition("step", w[t, e], stepped, (e,)),
        Definition("room below the cap", room[t, e], largest - alpha[t, e], (e,)),
        Definition("room above β", slack[t], most - beta[t]),
    )
    signs = (alpha, cap, room, beta, slack)
    setting = Setting(definitions, (unit,), nonnegative=signs, nonempty=(K,), instances=SIZES)
    before = channels(w[t - 1, e] ** 2)
    decayed, after = channels(alpha[t, e] ** 2 * w[t - 1, e] ** 2), channels(w[t, e] ** 2)
    faded = channels(room[t, e] * (largest + alpha[t, e]) * w[t - 1, e] ** 2)
    erased = beta[t] * slack[t] * read_back**2
    square = channels(k[t, e] ** 2)
    chain = Chain("squared length before the step, at the largest decay", setting, largest**2 * before)
    chain = chain.unfold("what the decays take away", decayed + faded, "room below the cap")
    added = beta[t] ** 2 * read_back**2 * (square - 1)
    chain = chain.use("unit key", decayed + added + faded, **{"unit key": -(beta[t] ** 2) * read_back**2})
    chain = chain.unfold("what the erase takes away", after + erased + faded, "step", "room above β")
    return chain.drop("neither part is negative", after, erased, faded).obligation()


def one_step_back(most: int = 2) -> Obligation:
    """‖x‖² ≥ ‖Diag(α_t)(I − β_t k_t k_tᵀ)x‖² for decays of at most 1; ``most`` is the largest β allowed."""
    x, y = IndexedBase("x"), IndexedBase("y")
    read = channels(k[t, e] * x[e])
    definitions = (
        Definition("erased", y[e], x[e] - beta[t] * k[t, e] * Sum(k[t, f] * x[f], (f, 1, K)), (e,)),
        Definition("room below 1", room[t, e], 1 - alpha[t, e], (e,)),
        Definition("room above β", slack[t], most - beta[t]),
    )
    signs = (alpha, room, beta, slack)
    setting = Setting(definitions, (unit,), nonnegative=signs, nonempty=(K,), instances=SIZES)
    before, erased = channels(x[e] ** 2), beta[t] * slack[t] * read**2
    added = beta[t] ** 2 * read**2
    chain = Chain("squared length before the transposed step", setting, before)
    after = before + added * (channels(k[t, e] ** 2) - 1)
    chain = chain.use("unit key", after, **{"unit key": -added})
    chain = chain.unfold("what the erase takes away", channels(y[e] ** 2) + erased, "erased", "room above β")
    decayed, faded = (
        channels(alpha[t, e] ** 2 * y[e] ** 2),
        channels(room[t, e] * (1 + alpha[t, e]) * y[e] ** 2),
    )
    chain = chain.unfold("what the decays take away", decayed + faded + erased, "room below 1")
    return chain.drop("neither part is negative", decayed, faded, erased).obligation()


def telescope(sign: int = -1) -> Obligation:
    """N[t] = N[j] − Σ_{j<i≤t} R[i] with R[i] = N[i − 1] − N[i], what step i takes away."""
    total = norm[j] + sign * Sum(shed[i], (i, j + 1, t))
    goal = Induction("squared length after any number of steps", t, j, norm[t], total)
    base = Chain("no step yet", Setting(instances=({j: 0}, {j: 2})), norm[j])
    base = base.rearrange("an empty sum", goal.rhs.subs(t, j))
    step_taken = Definition("one step", norm[t], norm[t - 1] - shed[t])
    sizes = ({j: 0, t: 1}, {j: 1, t: 3})
    setting = Setting((step_taken, goal.hypothesis), order=((j + 1, t),), instances=sizes)
    step = Chain("one step more", setting, norm[t])
    step = step.unfold("what it takes away", norm[t - 1] - shed[t], "one step")
    step = step.unfold("the steps before", goal.rhs.subs(t, t - 1) - shed[t], "induction hypothesis")
    return goal.obligation(base, step.split("it joins the sum", goal.rhs, t, t - 1))


def never_longer() -> Obligation:
    """N[j] ≥ N[t], as every R[i] is at least 0."""
    total = Sum(shed[i], (i, j + 1, t))
    known = Definition("all steps", norm[t], norm[j] - total)
    setting = Setting((known,), nonnegative=(shed,), instances=({j: 0, t: 1}, {j: 1, t: 3}))
    chain = Chain("squared length before all steps", setting, norm[j])
    chain = chain.unfold("add what the steps took away", norm[t] + total, "all steps")
    return chain.drop("no step adds anything", norm[t], total).obligation()


def cauchy_schwarz(sign: int = -1) -> Obligation:
    """‖q‖²‖w‖² ≥ (q·w)²: the difference is half the sum of the squares (q_i w_j − q_j w_i)²."""
    x = IndexedBase("x")
    setting = Setting(nonempty=(K,), instances=({K: 2}, {K: 3}))
    lengths = channels(q[e] ** 2) * channels(x[e] ** 2)
    product = channels(q[e] * x[e]) ** 2
    minors = Rational(1, 2) * Sum((q[e] * x[f] + sign * q[f] * x[e]) ** 2, (f, 1, K), (e, 1, K))
    chain = Chain("Cauchy and Schwarz, with the defect as squares", setting, lengths)
    chain = chain.rearrange("Lagrange's identity", product + minors)
    return chain.drop("squares", product, minors).obligation()
