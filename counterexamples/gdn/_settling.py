"""Why the growth of the GDN form ends on bounded data: from some time on every transition contracts."""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from counterexamples.gdn._symbols import SIZES, K, c, dot, e, kappa, t
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.evidence import Obligation

n, radius, later = symbols("n B m")
vector = IndexedBase("x")
square = dot(kappa[t, c], kappa[t, c])
norm = Hypothesis("norm", square, n)


def moved(channel: Expr) -> Expr:
    """One channel of the transition applied to x."""
    return (1 - 1 / t) * vector[channel] - kappa[t, channel] * dot(kappa[t, c], vector[c]) / t


def contracts(gain: Expr) -> Obligation:
    """(1 − 1/t)²‖x‖² − ‖Mx‖² = (κ·x)²(2(t − 1) − n)/t²."""
    image = IndexedBase("y")
    stepped = Definition("image", image[e], moved(e), free=(e,))
    setting = Setting((stepped,), (norm,), nonempty=(t, K), instances=SIZES)
    whole = dot(vector[c], vector[c])
    start = (1 - 1 / t) ** 2 * whole - Sum(image[e] ** 2, (e, 1, K))
    chain = Chain("what one transition takes from a squared length", setting, start)
    along = dot(kappa[t, c], vector[c])
    expanded = along**2 * (2 * (t - 1) - square) / t**2
    chain = chain.unfold("expand", expanded, "image")
    return chain.use("the squared length of κ", along**2 * gain / t**2, norm=-(along**2) / t**2).obligation()


def averaged() -> Obligation:
    """(1 − 1/t)‖a‖² + (1/t)‖w‖² − ‖(1 − 1/t)a + (1/t)w‖² >= 0, at t = m + 1."""
    old, new = IndexedBase("a"), IndexedBase("w")
    setting = Setting(nonnegative=(later,), nonempty=(K,), instances=({later: 1, K: 2}, {later: 3, K: 2}))
    keep, share = later / (later + 1), 1 / (later + 1)
    average = keep * old[c] + share * new[c]
    start = keep * dot(old[c], old[c]) + share * dot(new[c], new[c]) - dot(average, average)
    chain = Chain("the square of an average is below the average of squares", setting, start)
    apart = later * dot(old[c] - new[c], old[c] - new[c]) / (later + 1) ** 2
    return chain.drop("a square", Integer(0), apart).obligation()


def late() -> Obligation:
    """4Bm²/(m + 1)² <= 2m for m + 1 >= 2B, the excess y = m + 1 − 2B."""
    excess = symbols("y")
    reached = Hypothesis("late", excess, later + 1 - 2 * radius)
    setting = Setting((), (reached,), nonnegative=(radius, excess, later))
    last = later + 1
    chain = Chain("the bound on ‖κ‖² against 2m", setting, 2 * later - 4 * radius * later**2 / last**2)
    terms = 2 * later * (last * excess + 2 * radius) / last**2
    chain = chain.use("insert the excess", terms, late=-2 * later / last)
    return chain.drop("no term is negative", Integer(0), terms).obligation()
