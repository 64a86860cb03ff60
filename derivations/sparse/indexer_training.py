"""Training an indexer on KL(p‖softmax I) matches mass, not order: its gradient is softmax(I) − p.

Only the log-sum-exp and the linear term of the divergence depend on the indexer's scores. A small
divergence may come with the wrong best token, when two scores nearly tie; and the right order with a large
divergence, when the indexer is too sure of it.
"""

from sympy import Expr, IndexedBase, Sum, exp, log, symbols

from derivations.sparse._selection import chosen
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, k, n = symbols("j k n")
p, index, r = (IndexedBase(name) for name in ("p", "I", "r"))
s1, s2, i1, i2 = symbols("s_1 s_2 I_1 I_2")
SIZES = ({n: 2, k: 1}, {n: 3, k: 2})
partition = Sum(exp(index[j]), (j, 1, n))
indexer = Definition("softmax of I", r[k], exp(index[k]) / partition, free=(k,))


def _gradient(after: Expr) -> Obligation:
    unit = Hypothesis("unit", Sum(p[j], (j, 1, n)), 1)
    setting = Setting((indexer,), (unit,), (p,), nonempty=(n,), order=((1, k), (k, n)), instances=SIZES)
    start = Sum(p[j] * (log(p[j]) - log(r[j])), (j, 1, n))
    chain = Chain("the gradient of the divergence in one indexer score", setting, start)
    written = Sum(p[j] * (log(p[j]) - index[j]), (j, 1, n)) + log(partition) * Sum(p[j], (j, 1, n))
    chain = chain.unfold("ln r_j = I_j − ln Σ e^I", written, "softmax of I")
    slope = exp(index[k]) / partition * Sum(p[j], (j, 1, n)) - p[k]
    chain = chain.differentiate("the entropy of p is constant", slope, index[k])
    named = r[k] * Sum(p[j], (j, 1, n)) - p[k]
    chain = chain.unfold("name the weight", named, "softmax of I")
    return chain.use("the weights sum to 1", after, unit=r[k]).obligation()


def _stationary() -> Obligation:
    zero = Hypothesis("stationary", r[k] - p[k], 0)
    chain = Chain("where it vanishes", Setting((), (zero,), instances=SIZES), r[k])
    return chain.use("every component vanishes", p[k], stationary=1).obligation()


def _divergence(scores: tuple[str, str], own: tuple[str, str], low: str, high: str) -> Obligation:
    """KL(softmax s ‖ softmax I) for two tokens, enclosed."""
    total_s, total_i = exp(s1) + exp(s2), exp(i1) + exp(i2)
    mean = (exp(s1) * (s1 - i1) + exp(s2) * (s2 - i2)) / total_s
    values = dict(zip(("s_1", "s_2", "I_1", "I_2"), (*scores, *own), strict=True))
    data = {"term": tree(mean - log(total_s) + log(total_i)), "values": values, "above": low, "below": high}
    label = f"the divergence for scores {', '.join(scores)} indexed {', '.join(own)}"
    return Obligation("inequality", label, "B", data)


NEAR_TIE = (("1/50", "0"), ("0", "1/50"))
TOO_SURE = (("1", "0"), ("40", "0"))


def _wrong_order(kept: int) -> Obligation:
    scores, own = map(list, NEAR_TIE)
    label = "scores 1/50 and 0, indexed the other way round: token 1 is kept, and drops more than half"
    return chosen(label, scores, [kept], selector=own, dropped_above="1/2", best_below="1/2")


def _right_order() -> Obligation:
    scores, own = map(list, TOO_SURE)
    label = "scores 1 and 0, indexed 40 and 0: the best token is kept"
    return chosen(label, scores, [0], selector=own, dropped_below="27/100", best_above="26/100")


def parts() -> tuple[Part, ...]:
    """The gradient, where it vanishes, and both witnesses."""
    return (
        Part(
            r"$\frac{\partial}{\partial I_k}\mathrm{KL}(p\|\mathrm{softmax}\,I)=\mathrm{softmax}(I)_k-p_k$;"
            r" it vanishes for all $k$ iff the indexer's weights are $p$.",
            (_gradient(r[k] - p[k]), _stationary()),
        ),
        Part(
            r"A divergence below $2.1\cdot10^{-4}$ with the wrong best token: scores $(\frac1{50},0)$,"
            r" indexed $(0,\frac1{50})$.",
            (_wrong_order(1), _divergence(*NEAR_TIE, "0", "21/100000")),
        ),
        Part(
            r"The right best token with a divergence above 10: scores $(1,0)$, indexed $(40,0)$.",
            (_right_order(), _divergence(*TOO_SURE, "10", "11")),
        ),
    )


CLAIM = Claim(
    id="sparse.indexer-training",
    title="Training an indexer on KL(p‖softmax I) matches mass, not order: its gradient is softmax(I) − p",
    statement=(
        r"The gradient of $\mathrm{KL}(p\|\mathrm{softmax}\,I)$ in the indexer's scores is"
        r" $\mathrm{softmax}(I)-p$. The divergence can be below $2.1\cdot10^{-4}$ while the indexer's top"
        r" token is the wrong one, and above 10 while it is the right one."
    ),
    source="article A, section 5 (DeepSeek sparse attention, arXiv 2512.02556)",
    status=Status.AS_PRINTED,
    scope="every number of tokens for the gradient; the witnesses with two tokens, one kept",
    variables=(
        Variable("n", "number of tokens, an integer ≥ 1"),
        Variable("p", "attention weights, > 0, sum 1"),
        Variable("I", r"indexer scores, $\mathbb{R}^n$"),
    ),
    assumptions=(Assumption("$p$ does not depend on the indexer (its gradient is stopped)"),),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant("sign flipped", "the gradient as p − softmax(I)", lambda: (_gradient(p[k] - r[k]),)),
        Mutant(
            "other divergence",
            "the gradient weighted by softmax(I), as if the arguments were exchanged",
            lambda: (_gradient(r[k] * (r[k] - p[k])),),
        ),
        Mutant("right token", "the near tie with token 0 kept", lambda: (_wrong_order(0),)),
        Mutant(
            "small when sure",
            "a divergence below 10 for the overconfident indexer",
            lambda: (_divergence(*TOO_SURE, "0", "10"),),
        ),
    ),
    remark=(
        "What a small divergence does bound is the mass that changes hands (by Pinsker's inequality), which"
        " is what matters; the order of near ties does not. What bounds the dropped mass key by key is the"
        " largest error (sparse.indexer-regret)."
    ),
)
