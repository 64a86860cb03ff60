"""Tsallis entropy tends to Shannon's at a uniform rate, so its minimiser tends to softmax.

One weight a = e^{−L} with L >= 0, at α = 1 + ε: its Tsallis term h = (a − a^{1+ε})/(ε(1 + ε)) lies below the
Shannon term aL by at most εaL(1 + L) <= 5ε. A vanishing weight contributes 0 to both.
"""

from sympy import Expr, Integer, exp, log, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.evidence import Obligation

L, epsilon, n = symbols(r"L \epsilon n")
h, below, above, half, whole = symbols("h f g g_2 g_1")
F_shannon, F_shannon_p, F_tsallis, F_tsallis_p = symbols(r"F_1(a) F_1(p) F_\alpha(a) F_\alpha(p)")
first, second, third = symbols("e_1 e_2 e_3")
x, y, g = symbols("x y g")

weight = exp(-L)
shannon = weight * L
tsallis = (weight - exp(-L - epsilon * L)) / (epsilon * (1 + epsilon))


def _setting(*definitions: Definition) -> Setting:
    return Setting(definitions, positive=(epsilon,), nonnegative=(L, h, below, above, half, whole))


def not_above() -> Obligation:
    """aL − h >= 0."""
    excess = Definition("excess", below, exp(-epsilon * L) - 1 + epsilon * L)
    chain = Chain("Shannon's term minus Tsallis's", _setting(excess), shannon - tsallis)
    left = weight * (epsilon * L + below / epsilon) / (1 + epsilon)
    chain = chain.unfold("by e^{−εL} >= 1 − εL", left, "excess")
    return chain.drop("nothing is negative", Integer(0), left).obligation()


def not_far_below(rate: Expr) -> Obligation:
    """εaL(1 + L) − (aL − h) >= 0."""
    excess = Definition("excess", above, exp(epsilon * L) - 1 - epsilon * L)
    chain = Chain("the distance is at most εaL(1 + L)", _setting(excess), rate - (shannon - tsallis))
    y = epsilon * L
    gain = weight * exp(-y) * above / (epsilon * (1 + epsilon) * (1 + y))
    room = epsilon * weight * L * (epsilon + y + y * L + epsilon * y + y * y) / ((1 + epsilon) * (1 + y))
    chain = chain.unfold("by e^{εL} >= 1 + εL", gain + room, "excess")
    return chain.drop("nothing is negative", Integer(0), gain, room).obligation()


def bounded() -> tuple[Obligation, Obligation]:
    """aL <= 1 and aL² <= 4, the latter in h = L/2."""
    one = Definition("excess", whole, exp(L) - 1 - L)
    two = Definition("excess at half", half, exp(h) - 1 - h)
    linear = Chain("aL is at most 1", _setting(one), 1 - weight * L)
    left = weight * (1 + whole)
    linear = linear.unfold("by e^L >= 1 + L", left, "excess")
    square = Chain("aL² is at most 4 (h = L/2)", _setting(two), 4 - exp(-2 * h) * (2 * h) ** 2)
    rest = exp(-2 * h) * (4 * (1 + half) ** 2 + 8 * (1 + half) * h)
    square = square.unfold("by e^h >= 1 + h, squared", rest, "excess at half")
    return (
        linear.drop("nothing is negative", Integer(0), left).obligation(),
        square.drop("nothing is negative", Integer(0), rest).obligation(),
    )


def minimisers() -> Obligation:
    """5nε − (F₁(a) − F₁(p)) >= 0 for a minimiser a of F_α, from F₁ <= F_α <= F₁ + 5nε."""
    definitions = (
        Definition("F_1 is below", F_shannon, F_tsallis - first),
        Definition("a is a minimiser", F_tsallis, F_tsallis_p - second),
        Definition("F_α is near", F_tsallis_p, F_shannon_p + 5 * n * epsilon - third),
    )
    setting = Setting(definitions, nonnegative=(first, second, third), nonempty=(n,))
    chain = Chain("what a minimiser costs more", setting, 5 * n * epsilon - (F_shannon - F_shannon_p))
    names = (definition.name for definition in definitions)
    chain = chain.unfold("three inequalities", first + second + third, *names)
    return chain.drop("none is negative", Integer(0), first, second, third).obligation()


def roots(share: int) -> Obligation:
    """A term of KL(a‖p) is at least share·(√a − √p)², with a = x² and p = y² (true up to 1)."""
    tangent = Definition("tangent", g, y / x - 1 - log(y / x))
    setting = Setting((tangent,), positive=(x, y), nonnegative=(g,))
    term = 2 * x**2 * log(x) - 2 * x**2 * log(y) + y**2 - x**2
    chain = Chain("a term of the divergence, in roots", setting, term)
    square, left = share * (x - y) ** 2, 2 * x**2 * g
    chain = chain.unfold("2·ln(y/x) against 2(y/x − 1)", square + left, "tangent")
    return chain.drop("the tangent's excess is not negative", square, left).obligation()
