"""Aligned, truncated sums: the steps of their error bound, and the model on literal numbers."""

from fractions import Fraction
from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.evidence import Obligation

i, n, t = symbols("i n t")
grid, share, rho, power, largest = symbols(r"g w \rho P M")
exact_size, sum_size, rounded = symbols("|S| |A| D")
over, room, lost, smaller = symbols("a b r h")
x, c, slack = IndexedBase("x"), IndexedBase("c"), IndexedBase("l")
result, local, products, error = (IndexedBase(name) for name in ("D", "d", "p", "e"))
exact, aligned = Sum(x[i], (i, 1, n)), Sum(c[i], (i, 1, n))
SIZES = ({n: 2}, {n: 3})


def _cut(sign: int) -> Definition:
    return Definition("less than a grid step is cut off", slack[i], grid - sign * (c[i] - x[i]), free=(i,))


def size_of_sum(sign: int) -> Obligation:
    """|S| + n g >= ±A, so that |A| <= |S| + n g."""
    absolute = Definition("size of the exact sum", over, exact_size - sign * exact)
    setting = Setting((absolute, _cut(sign)), nonnegative=(slack, over), nonempty=(n,), instances=SIZES)
    side = "above" if sign == 1 else "below"
    chain = Chain(f"the sum of what is left, bounded from {side}", setting, exact_size + n * grid)
    rest = over + Sum(slack[i], (i, 1, n))
    after = sign * aligned
    chain = chain.unfold("a cut for each term", after + rest, absolute.name, _cut(sign).name)
    return chain.drop("drop what is not negative", after, rest).obligation()


def error_of_step(sign: int, terms: Expr | int = n, *, final: int = 1) -> Obligation:
    """n g + ρ(|S| + n g) >= ±(D − S)."""
    definitions = (
        _cut(sign),
        Definition("room for the sum", room, exact_size + n * grid - sum_size),
        Definition("the result is truncated", lost, rho * sum_size - sign * (rounded - aligned)),
    )
    known = (slack, room, lost, rho)
    setting = Setting(definitions, nonnegative=known, nonempty=(n,), instances=SIZES)
    bound = terms * grid + final * rho * (exact_size + n * grid)
    side = "above" if sign == 1 else "below"
    chain = Chain(f"the error of a step, bounded from {side}", setting, bound)
    after = sign * (rounded - exact)
    rest = Sum(slack[i], (i, 1, n)) + rho * room + lost
    names = tuple(item.name for item in definitions)
    chain = chain.unfold("cuts, and the truncated result", after + rest, *names)
    return chain.drop("drop what is not negative", after, rest).obligation()


def in_largest(power_of_two: Expr = power) -> Obligation:
    """g = w P with P, the largest power of two, at most M: the bound in terms of M."""
    definitions = (
        Definition("the largest term", smaller, largest - power),
        Definition("grid", grid, share * power_of_two),
    )
    setting = Setting(definitions, nonnegative=(smaller, share, rho, n), instances=SIZES)
    bound = n * share * largest + rho * (exact_size + n * share * largest)
    chain = Chain("the bound by the largest term", setting, bound)
    after, rest = n * grid + rho * (exact_size + n * grid), (1 + rho) * n * share * smaller
    chain = chain.unfold("the grid is no coarser", after + rest, "the largest term", "grid")
    return chain.drop("drop what is not negative", after, rest).obligation()


def errors_add(factor: int = 1) -> Obligation:
    """D[t] = D[t − 1] + p[t] + d[t] makes D[t] minus the exact sum Σ d."""
    goal = Induction("errors of steps in a row", t, Integer(0), error[t], Sum(local[i], (i, 1, t)))
    so_far = Definition("error", error[t], result[t] - result[0] - Sum(products[i], (i, 1, t)))
    at_first = Definition("error", error[0], result[0] - result[0])
    base = Chain("no step", Setting((at_first,)), error[0]).unfold("none", goal.rhs.subs(t, 0), "error")
    before = Definition("error before", error[t - 1], so_far.rhs.subs(t, t - 1))
    one = Definition("step", result[t], result[t - 1] + products[t] + factor * local[t])
    definitions = (so_far, before, one, goal.hypothesis)
    setting = Setting(definitions, order=((1, t),), instances=({t: 1}, {t: 3}))
    step = Chain("one more step", setting, error[t]).unfold("by definition", so_far.rhs, "error")
    earlier = result[t - 1] + local[t] - result[0] - Sum(products[i], (i, 1, t - 1))
    step = step.split("what the step does", earlier, t, t - 1, "step")
    step = step.unfold("the error before", error[t - 1] + local[t], "error before")
    step = step.unfold("the steps before", goal.rhs.subs(t, t - 1) + local[t], "induction hypothesis")
    return goal.obligation(base, step.split("it joins them", goal.rhs, t, t - 1))


Pair = tuple[Fraction, Fraction]


def product(size: str, exponent: int) -> Pair:
    """A product size · 2^exponent of two factors, the second of them a power of two."""
    return Fraction(size) * Fraction(2) ** (exponent // 2), Fraction(2) ** (exponent - exponent // 2)


def instance(
    label: str,
    fraction: int,
    steps: list[list[Pair]],
    result: str,
    *exceeds: int,
    addend: str = "1",
    precision: int = 24,
    bound: tuple[str, str] | None = None,
) -> Obligation:
    """The model on literal numbers, within the bound of its own parameters.

    Args:
        label: what is shown.
        fraction: f.
        steps: the products of each step, as pairs of factors.
        result: the last result, a rational.
        exceeds: m's for which γ_m times the sizes is exceeded.
        addend: what the first step adds its products to.
        precision: of the result.
        bound: other coefficients than 2^-f and 2^(1 − p).
    """
    term, final = bound or (str(Fraction(1, 2**fraction)), str(Fraction(2, 2**precision)))
    data: dict[str, Any] = {
        "model": {"fraction": fraction, "precision": precision, "min_exponent": -126},
        "addend": addend,
        "steps": [[[str(a), str(b)] for a, b in step] for step in steps],
        "result": result,
        "bound": {"term": term, "final": final},
        "exceeds": list(exceeds),
    }
    return Obligation("aligned-sum", label, "E", data)
