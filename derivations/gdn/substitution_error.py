"""Replacing the query inside the old prediction costs a product of two linear terms.

The quadratic term of gdn.affine-obstruction becomes linear when the query that reads the old state is
replaced by a fixed vector. The cost is computed for both readings: the replacement in the quadratic term only
(this gives the GDN form) and in the whole error v_t − o_{t−1}.
"""

from sympy import Expr, IndexedBase, Integer

from derivations.gdn._symbols import SIZES, K, S, b, c, dot, kappa, q, t, v
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

guess = IndexedBase(r"\hat{q}")
along = dot(kappa[t, c], q[c])
read, guessed = dot(S[t - 1, c], q[c]), dot(S[t - 1, c], guess[c])
difference = dot(S[t - 1, c], q[c] - guess[c])


def _exact() -> Expr:
    return b[t - 1] + read + (1 + along) / t * (v[t] - b[t - 1] - read)


def _cost(substituted: Expr, after: Expr, title: str) -> Obligation:
    setting = Setting(nonempty=(t, K), instances=SIZES)
    chain = Chain(title, setting, substituted - _exact())
    return chain.rearrange("everything else cancels", after).obligation()


def _only_quadratic(after: Expr) -> Obligation:
    """The part of the weight that does not depend on q keeps the true prediction."""
    kept = b[t - 1] + read + (v[t] - b[t - 1] - read) / t
    return _cost(
        kept + along / t * (v[t] - b[t - 1] - guessed), after, "the query replaced in the quadratic term"
    )


def _whole_error(after: Expr) -> Obligation:
    substituted = b[t - 1] + read + (1 + along) / t * (v[t] - b[t - 1] - guessed)
    return _cost(substituted, after, "the query replaced in the whole error")


def _no_cost() -> Obligation:
    right = Definition("right guess", guess[c], q[c], free=(c,))
    setting = Setting((right,), nonempty=(t, K), instances=SIZES)
    chain = Chain("the cost at the substituted query itself", setting, along * difference / t)
    return chain.unfold("the difference vanishes", Integer(0), "right guess").obligation()


def parts() -> tuple[Part, ...]:
    """Both costs, and where they vanish."""
    return (
        Part(
            r"Replacing $q$ by $\hat q$ in the quadratic term, $-\tfrac1t(\kappa_t\cdot q)(S_{t-1}^\top\hat"
            r" q)$ for $-\tfrac1t(\kappa_t\cdot q)(S_{t-1}^\top q)$, changes the new output by exactly"
            r" $\tfrac1t(\kappa_t\cdot q)\,S_{t-1}^\top(q-\hat q)$.",
            (_only_quadratic(along * difference / t),),
        ),
        Part(
            r"Replacing it in the whole error $v_t-o_{t-1}$ costs $\tfrac1t(1+\kappa_t\cdot"
            r" q)\,S_{t-1}^\top(q-\hat q)$: the self weight times the change of the old prediction.",
            (_whole_error((1 + along) * difference / t),),
        ),
        Part(r"At $q=\hat q$ nothing is lost, whatever the state.", (_no_cost(),)),
    )


CLAIM = Claim(
    id="gdn.substitution-error",
    title="Replacing the query inside the old prediction costs a product of two linear terms",
    statement=(
        r"Reading the old state with $\hat q$ instead of $q$ in the quadratic term of"
        r" gdn.affine-obstruction changes the new output by exactly $\tfrac1t(\kappa_t\cdot"
        r" q)\,S_{t-1}^\top(q-\hat q)$; in the whole error $v_t-o_{t-1}$ the factor is"
        r" $\tfrac1t(1+\kappa_t\cdot q)$."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 1, every key width K, values coordinate by coordinate; one step, given the old state",
    variables=(
        Variable(r"q,\hat q", r"the query and its substitute, $\mathbb{R}^K$"),
        Variable(r"\kappa_t", r"centred key, $\mathbb{R}^K$"),
        Variable("S_{t-1}", r"state before token $t$, one column, $\mathbb{R}^K$"),
        Variable("b_{t-1},v_t", r"one coordinate of the offset and of the value, $\mathbb{R}$"),
    ),
    assumptions=(
        Assumption("the self weight is taken to first order"),
        Assumption("the cost of one step: the states are those of the recurrence with the true query so far"),
    ),
    asked="C",
    parts=parts,
    mutants=(
        Mutant("sign flipped", "the cost with −", lambda: (_only_quadratic(-along * difference / t),)),
        Mutant(
            "constant weight added",
            "the cost in the quadratic term claimed to carry the whole self weight",
            lambda: (_only_quadratic((1 + along) * difference / t),),
        ),
        Mutant("factor lost", "the cost without 1/t", lambda: (_whole_error((1 + along) * difference),)),
    ),
    remark=(
        "The two readings are easily mixed up: the first gives the GDN form, whose decay 1 − 1/t reads the"
        " true prediction; the second is the error that gdn.least-squares-query minimises."
    ),
)
