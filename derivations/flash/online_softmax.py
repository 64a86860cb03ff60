"""Partial softmax results merge associatively, so every tiling gives the full softmax.

A partial result over some tokens is a reference m, the sum l of e^{s_j − m} and the sum o of e^{s_j −
m}·v_j. Two of them merge at any new reference by rescaling. The references cancel in o/l, so that the
maximum is needed against overflow only; with the maximum as reference the merge is associative because the
maximum is.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, r, t, T, reference = symbols("j r t T mu")
m1, m2, m3, m12, m23, m = symbols("m1 m2 m3 m12 m23 m")
l1, l2, l3 = symbols("l1 l2 l3")
s, v, ref, norm, out = (IndexedBase(name) for name in ("s", "v", "m", "l", "o"))
SIZES = ({r: 1, t: 3, T: 3}, {r: 2, t: 5, T: 5})


def _partial(first: Expr | int, last: Expr, at: Expr, value: Expr | int) -> Sum:
    """Σ e^{s_j − m}·(value) over a range: the partial normaliser (value 1) or output (value v_j)."""
    return Sum(exp(s[j] - at) * value, (j, first, last))


def _merge(left: Expr, left_at: Expr, right: Expr, right_at: Expr, at: Expr) -> Expr:
    """Both sums rescaled to the new reference and added."""
    return exp(left_at - at) * left + exp(right_at - at) * right


def _union(value: Expr | int, after: Expr) -> Obligation:
    setting = Setting(order=((1, r), (r, t)), instances=SIZES)
    merged = _merge(_partial(1, r, m1, value), m1, _partial(r + 1, t, m2, value), m2, m)
    what = "normaliser" if value == 1 else "output"
    chain = Chain(f"merging two adjacent tiles: {what}", setting, merged)
    at_new = _partial(1, r, m, value) + _partial(r + 1, t, m, value)
    chain = chain.rearrange("rescale to the new reference", at_new)
    return chain.split("one sum over both", after, t, r).obligation()


def _associative(after: Expr) -> Obligation:
    setting = Setting(instances=({},))
    left = _merge(_merge(l1, m1, l2, m2, m12), m12, l3, m3, m)
    chain = Chain("merging is associative", setting, left)
    return chain.rearrange("intermediate references cancel", after).obligation()


def _maximum(last: str) -> Obligation:
    text = f"""(set-logic QF_LRA)
(declare-const a Real)
(declare-const b Real)
(declare-const c Real)
(define-fun max ((x Real) (y Real)) Real (ite (<= x y) y x))
(assert (not (and (= (max (max a b) c) (max a (max b {last}))) (= (max a b) (max b a)) (<= a (max a b)))))
(check-sat)
"""
    data = {"smtlib": text, "expect": "unsat", "logic": "QF_LRA"}
    label = "the maximum is associative, commutative and no smaller than either"
    return Obligation("smt", label, "S", data)


def _commutative() -> Obligation:
    chain = Chain("merging is commutative", Setting(instances=({},)), _merge(l1, m1, l2, m2, m))
    return chain.rearrange("exchange the summands", _merge(l2, m2, l1, m1, m)).obligation()


def _neutral() -> Obligation:
    chain = Chain("nothing read", Setting(instances=({},)), _merge(l1, m1, Integer(0), m2, m1))
    return chain.rearrange("no rescaling, nothing added", l1).obligation()


def _running(value: Expr | int, family: IndexedBase, rescale: int) -> Obligation:
    """One token at a time, with any sequence of references m_t."""
    at_t = value.subs(j, t) if isinstance(value, Expr) else value
    what = "normaliser" if value == 1 else "output"
    goal = Induction(f"the running {what}", t, Integer(1), family[t], _partial(1, t, ref[t], value))
    start = Definition("start", family[1], exp(s[1] - ref[1]) * (v[1] if value != 1 else 1))
    base = Chain("the first token", Setting((start,)), family[1])
    base = base.unfold("a sum of one term", goal.rhs.subs(t, 1), "start")
    rescaled = exp(rescale * (ref[t - 1] - ref[t])) * family[t - 1]
    rule = Definition("step", family[t], rescaled + exp(s[t] - ref[t]) * at_t)
    setting = Setting((rule, goal.hypothesis), nonempty=(t, t - 1), instances=({t: 2}, {t: 4}))
    chain = Chain("one more token", setting, family[t]).unfold("rescale, add", rule.rhs, "step")
    older = _partial(1, t - 1, ref[t], value) + exp(s[t] - ref[t]) * at_t
    chain = chain.unfold("the sum so far, at the new reference", older, "induction hypothesis")
    return goal.obligation(base, chain.split("it joins the sum", goal.rhs, t, t - 1))


def _softmax(after: Expr) -> Obligation:
    setting = Setting(nonempty=(T,), instances=SIZES)
    start = _partial(1, T, reference, v[j]) / _partial(1, T, reference, 1)
    chain = Chain("the output", setting, start)
    return chain.rearrange("the reference cancels", after).obligation()


def _in_range() -> Obligation:
    """With the maximum as reference the normaliser is at least 1 and no exponent is positive."""
    largest = Definition("maximum", reference, s[T])
    setting = Setting((largest,), nonempty=(T,), order=((1, T),), instances=SIZES)
    chain = Chain("the normaliser is at least 1", setting, _partial(1, T, reference, 1))
    rest = Sum(exp(s[j] - s[T]), (j, 1, T - 1))
    chain = chain.unfold("the reference is the largest score", Sum(exp(s[j] - s[T]), (j, 1, T)), "maximum")
    chain = chain.split("its own term is 1", 1 + rest, T, T - 1)
    return chain.drop("the others are positive", Integer(1), rest).obligation()


full = Sum(exp(s[j]) * v[j], (j, 1, T)) / Sum(exp(s[j]), (j, 1, T))


def parts() -> tuple[Part, ...]:
    """Merge of tiles, its laws, the running form, the output, and that it stays in range."""
    return (
        Part(
            r"Merging the partial results of tokens $1..r$ and $r+1..t$ at any reference gives the partial"
            r" result of tokens $1..t$, for every cut $r$; so, tile after tile, for every tiling, unequal"
            r" tiles included.",
            (_union(1, _partial(1, t, m, 1)), _union(v[j], _partial(1, t, m, v[j]))),
        ),
        Part(
            r"The merge $(m_1,l_1,o_1)\oplus(m_2,l_2,o_2)=(m,\ e^{m_1-m}l_1+e^{m_2-m}l_2,\ "
            r"e^{m_1-m}o_1+e^{m_2-m}o_2)$ with $m=\max(m_1,m_2)$ is associative and commutative, for any"
            r" triples, and $(m,0,0)$ with $m$ no larger than the other reference adds nothing.",
            (
                _associative(_merge(l1, m1, _merge(l2, m2, l3, m3, m23), m23, m)),
                _commutative(),
                _neutral(),
                _maximum("c"),
            ),
        ),
        Part(
            r"Read token by token, $l_t=e^{m_{t-1}-m_t}l_{t-1}+e^{s_t-m_t}$ and"
            r" $o_t=e^{m_{t-1}-m_t}o_{t-1}+e^{s_t-m_t}v_t$ are the partial sums of all tokens so far, for"
            r" every $t$ and every sequence of references.",
            (_running(1, norm, 1), _running(v[j], out, 1)),
        ),
        Part(r"$o/l$ is the full softmax output, whatever the reference.", (_softmax(full),)),
        Part(
            r"With the largest score as reference no exponent is positive and $l\ge1$, so no exponential"
            r" overflows and nothing is divided by 0.",
            (_in_range(),),
        ),
    )


CLAIM = Claim(
    id="flash.online-softmax",
    title="Partial softmax results merge associatively, so every tiling gives the full softmax",
    statement=(
        r"For a set of tokens let $m$ be a reference, $l=\sum e^{s_j-m}$ and $o=\sum e^{s_j-m}v_j$. The merge"
        r" that rescales two such triples to $\max(m_1,m_2)$ and adds them is associative and commutative,"
        r" gives the triple of the union, and $o/l$ of all tokens is the softmax output: every tiling, in"
        r" every order, equals the full softmax in exact arithmetic."
    ),
    source="article C (online softmax, FlashAttention)",
    status=Status.AS_PRINTED,
    scope="every number of tokens, every tiling and order, any references, all real scores; exact arithmetic",
    variables=(
        Variable("r, t, T", r"tokens, integers with $1\le r\le t$"),
        Variable("s_j", r"score, $\mathbb{R}$ (over temperature)"),
        Variable("v_j", r"one coordinate of the value, $\mathbb{R}$"),
        Variable("m", r"reference, $\mathbb{R}$"),
    ),
    assumptions=(
        Assumption("exact arithmetic"),
        Assumption("in the last part tokens are numbered so that the largest score is last"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "rescaled the wrong way",
            "the running sum multiplied by e^{m_t − m_{t−1}}",
            lambda: (_running(1, norm, -1),),
        ),
        Mutant(
            "old reference",
            "a merged tile stated at the first tile's reference",
            lambda: (_union(1, _partial(1, t, m1, 1)),),
        ),
        Mutant(
            "overlapping tiles",
            "the boundary token counted twice",
            lambda: (_union(1, _partial(1, t, m, 1) + exp(s[r] - m)),),
        ),
        Mutant(
            "unscaled third",
            "the last triple merged without rescaling",
            lambda: (_associative(_merge(l1, m1, l2, m2, m) + l3),),
        ),
        Mutant("maximum of two", "a maximum that forgets one argument", lambda: (_maximum("a"),)),
    ),
    remark=(
        "In floating point the rescaling rounds, so the order of tiles does matter there; that is the"
        " business of the kernel certificates, not of this identity."
    ),
)
