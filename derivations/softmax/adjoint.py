"""The backward pass of softmax attention: one number per query, then matrix products.

Each query row is followed along a direction of its scores; collecting what stands with each input's direction
gives its gradient. The mean that softmax subtracts is Σ_d ō_d o_d, known from the output alone, so weights
are recomputed from the scores and the log-sum-exp and never kept.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from derivations.softmax._backward import in_numbers
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, l, c, d, e, f, n, T, K, V = symbols("i j l c d e f n T K V")  # noqa: E741
eps, scale = symbols("epsilon gamma")
s, p, q, k, v, o, lse, mask = (IndexedBase(name) for name in ("s", "p", "q", "k", "v", "o", "L", "M"))
s_dot, p_dot, q_dot, k_dot, v_dot, o_dot, lse_dot = (
    IndexedBase(name) for name in ("sdot", "pdot", "qdot", "kdot", "vdot", "odot", "Ldot")
)
s_bar, p_bar, q_bar, k_bar, v_bar, o_bar, lse_bar = (
    IndexedBase(name) for name in ("sbar", "pbar", "qbar", "kbar", "vbar", "obar", "Lbar")
)
delta = IndexedBase("delta")
SIZES = ({n: 2, T: 2, K: 1, V: 2}, {n: 1, T: 3, K: 2, V: 1})
ROW = tuple({**sizes, i: 1, j: 2} for sizes in SIZES)


def tokens(summand: Expr) -> Sum:
    """Σ over the T tokens l that a query may see."""
    return Sum(summand, (l, 1, T))


def power(token: Expr, moved: Expr | int = 0) -> Expr:
    """M_ij·e^{s_ij}, the scores moved along their direction."""
    return mask[i, token] * exp(s[i, token] + moved * s_dot[i, token])


weight = Definition("weight", p[i, j], power(j) / tokens(power(l)), (j,))
moved_weight = Definition(
    "weight moves", p_dot[i, j], p[i, j] * (s_dot[i, j] - tokens(p[i, l] * s_dot[i, l])), (i, j)
)
moved_total = Definition("log-sum-exp moves", lse_dot[i], tokens(p[i, l] * s_dot[i, l]), (i,))
moved_output = Definition(
    "output moves", o_dot[i, d], tokens(p_dot[i, l] * v[l, d] + p[i, l] * v_dot[l, d]), (i, d)
)
moved_score = Definition(
    "score moves",
    s_dot[i, j],
    scale * Sum(q_dot[i, e] * k[j, e] + q[i, e] * k_dot[j, e], (e, 1, K)),
    (i, j),
)
output = Definition("output", o[i, d], tokens(p[i, l] * v[l, d]), (i, d))
one_number = Definition("one number per query", delta[i], Sum(o_bar[i, f] * o[i, f], (f, 1, V)), (i,))
in_weight = Definition("in a weight", p_bar[i, j], Sum(o_bar[i, f] * v[j, f], (f, 1, V)), (i, j))
in_score = Definition("in a score", s_bar[i, j], p[i, j] * (p_bar[i, j] - delta[i] + lse_bar[i]), (i, j))
in_value = Definition("in a value", v_bar[j, d], Sum(p[l, j] * o_bar[l, d], (l, 1, n)), (j, d))
in_query = Definition("in a query", q_bar[i, c], scale * tokens(s_bar[i, l] * k[l, c]), (i, c))
in_key = Definition("in a key", k_bar[j, c], scale * Sum(s_bar[l, j] * q[l, c], (l, 1, n)), (j, c))


def _names(*definitions: Definition) -> tuple[str, ...]:
    return tuple(item.name for item in definitions)


def _derivative(
    title: str, function: Expr, after: Expr, *positive: IndexedBase
) -> tuple[Obligation, Obligation]:
    """The derivative along the direction, and that it is ``after`` at its start."""
    seen = (tokens(power(l, eps)), tokens(power(l)))
    slope = function.diff(eps)
    setting = Setting(nonzero=seen, positive=positive, nonempty=(T,), instances=ROW)
    chain = Chain(f"{title}: the derivative", setting, function)
    derivative = chain.differentiate("quotient rule, exponentials, logarithm", slope, eps).obligation()
    start = Definition("start of the line", eps, Integer(0))
    setting = Setting((start, weight), nonzero=seen[1:], nonempty=(T,), instances=ROW)
    chain = Chain(f"{title}: at the start of the line", setting, slope)
    return derivative, chain.unfold("name the weights", after, "start of the line", "weight").obligation()


def _weight(after: Expr = moved_weight.rhs) -> tuple[Obligation, Obligation]:
    return _derivative("weight", power(j, eps) / tokens(power(l, eps)), after)


def _total() -> tuple[Obligation, Obligation]:
    return _derivative("log-sum-exp", log(tokens(power(l, eps))), moved_total.rhs, mask)


def _pairs(summand: Expr) -> Sum:
    """Σ over all queries i and tokens j."""
    return Sum(summand, (j, 1, T), (i, 1, n))


value_pair = Sum(v_bar[j, d] * v_dot[j, d], (d, 1, V), (j, 1, T))
query_pair = Sum(q_bar[i, c] * q_dot[i, c], (c, 1, K), (i, 1, n))
key_pair = Sum(k_bar[j, c] * k_dot[j, c], (c, 1, K), (j, 1, T))
total_pair = Sum(lse_bar[i] * lse_dot[i], (i, 1, n))


def _collected(scored: Definition = in_score, valued: Definition = in_value, sign: int = 1) -> Obligation:
    """The derivative of the loss, as pairings of gradients with directions."""
    definitions = (
        *(moved_weight, moved_total, moved_output, moved_score, output, one_number),
        *(in_weight, scored, valued, in_query, in_key),
    )
    setting = Setting(definitions, nonempty=(n, T, K, V), instances=SIZES)
    start = Sum(o_bar[i, d] * o_dot[i, d], (d, 1, V), (i, 1, n)) + total_pair
    chain = Chain("derivative of the loss along a direction", setting, start)
    after = value_pair + _pairs(p_bar[i, j] * p_dot[i, j]) + total_pair
    chain = chain.unfold("values and weights", after, *_names(moved_output, valued, in_weight))
    after = value_pair + _pairs(s_bar[i, j] * s_dot[i, j])
    names = _names(moved_weight, moved_total, scored, one_number, output, in_weight)
    chain = chain.unfold("softmax: one number per query is subtracted", after, *names)
    after = value_pair + query_pair + sign * key_pair
    return chain.unfold("queries and keys", after, *_names(moved_score, in_query, in_key)).obligation()


def _mean(after: Expr) -> Obligation:
    setting = Setting((output, in_weight, one_number), nonempty=(T, V), instances=ROW)
    chain = Chain("the mean that softmax subtracts", setting, Sum(p[i, j] * p_bar[i, j], (j, 1, T)))
    return chain.unfold("exchange the sums", after, *_names(in_weight, one_number, output)).obligation()


def _recomputed(after: Expr) -> Obligation:
    kept = Definition("log-sum-exp", lse[i], log(tokens(power(l))), (i,))
    setting = Setting((kept, weight), positive=(mask,), nonempty=(T,), instances=ROW)
    chain = Chain("a weight from its score and the log-sum-exp", setting, after)
    return chain.unfold("the total is in the exponent", p[i, j], "log-sum-exp", "weight").obligation()


def parts() -> tuple[Part, ...]:
    """Softmax along a direction, all inputs, the mean from the output, and recomputed weights."""
    return (
        Part(
            r"With $p_{ij}=M_{ij}e^{s_{ij}}/\sum_lM_{il}e^{s_{il}}$ and $\ell_i=\ln\sum_lM_{il}e^{s_{il}}$"
            r" (a sum over the tokens with $M_{il}>0$), scores that move along $\dot s$ give $\dot"
            r" p_{ij}=p_{ij}(\dot s_{ij}-\sum_lp_{il}\dot s_{il})$ and $\dot\ell_i=\sum_lp_{il}\dot s_{il}$.",
            (*_weight(), *_total()),
        ),
        Part(
            r"In every direction $\langle\bar O,\dot O\rangle+\bar\ell\cdot\dot\ell=\langle\bar V,\dot"
            r" V\rangle+\langle\bar Q,\dot Q\rangle+\langle\bar K,\dot K\rangle$ with the gradients of the"
            r" statement: the left side is the derivative of the loss, the right side has each gradient"
            r" beside the direction of its input.",
            (_collected(),),
        ),
        Part(
            r"The mean $\sum_jp_{ij}(\bar O_i\cdot V_j)$ that softmax subtracts is $\delta_i=\bar O_i\cdot"
            r" O_i$, known from the output.",
            (_mean(delta[i]),),
        ),
        Part(
            r"$p_{ij}=M_{ij}e^{s_{ij}-\ell_i}$: weights come back from the scores and one kept number per"
            r" query.",
            (_recomputed(mask[i, j] * exp(s[i, j] - lse[i])),),
        ),
        Part(
            r"On 3 literal queries over 4 tokens, some hidden, with rational $e^{s_{ij}}$, dual numbers"
            r" differentiate the loss in each score and each value: $\bar s$ and $\bar V$ are exactly that.",
            (in_numbers(),),
        ),
    )


def _damaged(definition: Definition, rhs: Expr) -> Definition:
    return Definition(definition.name, definition.lhs, rhs, definition.free)


NO_BASELINE = _damaged(in_score, p[i, j] * (p_bar[i, j] + lse_bar[i]))
LSE_SIGN = _damaged(in_score, p[i, j] * (p_bar[i, j] - delta[i] - lse_bar[i]))
ROWS_FOR_COLUMNS = _damaged(in_value, Sum(p[j, l] * o_bar[l, d], (l, 1, n)))

CLAIM = Claim(
    id="softmax.adjoint",
    title="The backward pass of softmax attention: one number per query, then matrix products",
    statement=(
        r"For $O=PV$, $P_{ij}=M_{ij}e^{s_{ij}-\ell_i}$, $s=\gamma QK^\top$, $\ell_i=\ln\sum_jM_{ij}"
        r"e^{s_{ij}}$ and the loss $\langle\bar O,O\rangle+\bar\ell\cdot\ell$ the gradients are"
        r" $\bar V=P^\top\bar O$, $\bar s=P\circ(\bar OV^\top-\delta1^\top+\bar\ell1^\top)$ with"
        r" $\delta=\mathrm{rowsum}(\bar O\circ O)$, $\bar Q=\gamma\bar sK$ and $\bar K=\gamma\bar s^\top Q$."
    ),
    source="Dao et al., FlashAttention (arXiv 2205.14135), appendix B.2",
    status=Status.NEW,
    scope="every number of queries and tokens, all widths, any mask that leaves each query a token",
    variables=(
        Variable("Q, K", r"queries $n\times d$ and keys $T\times d$"),
        Variable("V", r"values $T\times V$"),
        Variable("M", r"mask: 0 for hidden tokens, 1 (or $e^{\mathrm{bias}}$) for the others"),
        Variable(r"\gamma", r"scale, $\mathbb{R}$"),
        Variable(r"\bar O, \bar\ell", "gradients of the loss in outputs and log-sum-exps"),
    ),
    assumptions=(
        Assumption("every query sees at least one token"),
        Assumption(
            "chain rule: a derivative along a line depends on first orders only; a loss that is"
            " differentiable in outputs and log-sum-exps has the gradients of this one, with its own"
            " derivatives as the cotangents"
        ),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant("no baseline", "the scores' gradient without δ", lambda: (_collected(NO_BASELINE),)),
        Mutant("sign of ℓ", "the log-sum-exp's cotangent subtracted", lambda: (_collected(LSE_SIGN),)),
        Mutant("rows for columns", "P in place of Pᵀ", lambda: (_collected(valued=ROWS_FOR_COLUMNS),)),
        Mutant("sign of the keys", "the keys' gradient negated", lambda: (_collected(sign=-1),)),
        Mutant("unweighted", "softmax moving without its mean", lambda: _weight(p[i, j] * s_dot[i, j])),
        Mutant("numbers", "δ taken twice in numbers", lambda: (in_numbers(2),)),
        Mutant("half", "δ as half of what the output gives", lambda: (_mean(delta[i] / 2),)),
        Mutant(
            "not normalised",
            "weights from the scores alone",
            lambda: (_recomputed(mask[i, j] * exp(s[i, j])),),
        ),
    ),
    remark=(
        "The cotangent of the log-sum-exp is what a merge of partial results over split histories sends back;"
        " without it $\\bar\\ell=0$."
    ),
)
