"""The exponential falls: 1 − e^{−g} is not negative for g >= 0, shown by ln y <= y − 1 at y = e^g."""

from sympy import IndexedBase, Integer, exp, log, symbols

from derivations.sparse._symbols import j
from verify.derive import Chain, Definition, Minimum, Setting
from verify.model.evidence import Obligation

y = symbols("y")
extra, saved, lifted = (IndexedBase(name) for name in ("g", "h", "l"))

saving = Definition("saved", saved[j], 1 - exp(-extra[j]), free=(j,))
"""h_j, the share of its weight that a token with extra gap g_j >= 0 saves; >= 0 by ``falls``."""


def falls() -> tuple[Obligation, ...]:
    """1 − e^{−g} >= 0 for every g >= 0."""
    lemma = Minimum("ln y is at most y − 1", y, y - 1 - log(y), Integer(1), Integer(0), 1 / y)
    at = Chain("the lemma at y = e^g", Setting(instances=({j: 1},)), exp(extra[j]) - 1 - log(exp(extra[j])))
    at = at.rearrange("the logarithm of an exponential", exp(extra[j]) - 1 - extra[j])
    more = Definition("lemma at e^g", lifted[j], exp(extra[j]) - 1 - extra[j])
    setting = Setting((more,), (), (), (lifted, extra), instances=({j: 1},))
    chain = Chain("a larger gap never weighs more", setting, 1 - exp(-extra[j]))
    terms = exp(-extra[j]) * (lifted[j] + extra[j])
    chain = chain.unfold("e^g − 1 = (e^g − 1 − g) + g", terms, "lemma at e^g")
    chain = chain.drop("both are at least 0", Integer(0), terms)
    return lemma.obligation(), at.obligation(), chain.obligation()
