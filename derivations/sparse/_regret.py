"""What choosing tokens by scores within ε of the true ones costs: key by key, and in dropped mass."""

from sympy import Expr, IndexedBase, Symbol, exp, symbols

from derivations.sparse._exponential import extra, saved, saving
from derivations.sparse._symbols import dropped, j, m
from verify.derive import Chain, Definition, Setting
from verify.model.evidence import Obligation

eps, shift, rest, spared, a, b = symbols("epsilon c B H a b")
s, index, order, near, good, x, y = (IndexedBase(name) for name in ("s", "I", "A", "N", "M", "x", "y"))
SIZES: tuple[dict[Symbol, int], ...] = ({m: 2, a: 1, b: 2}, {m: 3, a: 1, b: 2})


def distance(times: int) -> Obligation:
    """A dropped key a is at most ``times``·ε above a kept key b (true for 2)."""
    definitions = (
        Definition("kept before dropped", order[1], index[b] - index[a]),
        Definition("dropped is near", near[1], eps - (s[a] + shift - index[a])),
        Definition("kept is near", good[1], eps - (index[b] - s[b] - shift)),
    )
    names = tuple(item.name for item in definitions)
    setting = Setting(definitions, (), (), (order, near, good), instances=SIZES)
    chain = Chain("a dropped key a against a kept key b", setting, s[b] + times * eps)
    three = order[1] + near[1] + good[1]
    chain = chain.unfold("three differences", s[a] + three, *names)
    return chain.drop("none is negative", s[a], three).obligation()


def mass(factor: Expr) -> Obligation:
    """The dropped mass is at most ``factor`` times the best one (true for e^{2ε}).

    m tokens are dropped wrongly (scores x) and m kept wrongly (y); B is what both choices drop.
    """
    pair = Definition("pair", x[j], y[j] + 2 * eps - extra[j], free=(j,))
    helped = Definition("H", spared, 1 - exp(-2 * eps))
    setting = Setting((pair, saving, helped), (), (), (saved, rest, spared), nonempty=(m,), instances=SIZES)
    best = dropped(exp(y[j])) + rest
    chain = Chain("dropped mass against the best", setting, factor * best)
    spare = exp(2 * eps) * (dropped(exp(y[j]) * saved[j]) + spared * rest)
    mine = dropped(exp(x[j])) + rest
    chain = chain.unfold("pair the tokens", mine + spare, "pair", "saved", "H")
    return chain.drop("drop what is not negative", mine, spare).obligation()
