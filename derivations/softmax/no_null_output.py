"""Softmax cannot abstain: finite scores give no zero weight; a sink score scales the others down.

With a sink the other weights keep their proportions and lose the common factor 1 − p_sink; the output
without the sink's value is the old one times that factor, so it can come close to zero but not reach it.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Symbol, exp, symbols

from derivations.softmax._symbols import IN_RANGE, SIZES, j, k, n, over_tokens, p, partition, s, softmax, tau
from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

sink, share = Symbol(r"\sigma"), Symbol(r"p_\sigma")
q, v = IndexedBase("p'"), IndexedBase("v")
with_sink = exp(sink / tau) + partition
sunk = Definition("softmax with sink", q[k], exp(s[k] / tau) / with_sink, free=(k,))
sink_share = Definition("weight of the sink", share, exp(sink / tau) / with_sink)


def _setting() -> Setting:
    defined = (softmax, sunk, sink_share)
    left = 1 - exp(sink / tau) / with_sink
    return Setting(defined, (), (tau,), nonzero=(left,), nonempty=(n,), order=IN_RANGE, instances=SIZES)


def _never(weight: Expr) -> Obligation:
    """From e·f = 1 (e^x·e^{−x}), r·Z = 1 (the normaliser is inverted) and weight e·r = 0 follows 1 = 0."""
    e, f, r, z = symbols("e f r Z")
    terms = ((e * f - 1, -r * z), (r * z - 1, -1), (e * r - weight, f * z))
    data = {
        "equations": [tree(equation) for equation, _ in terms],
        "multipliers": [tree(multiplier) for _, multiplier in terms],
        "target": ["q", "1"],
    }
    return Obligation("polynomial-certificate", "no weight is zero: 1 would be 0", "E", data)


def _added(after: Expr) -> Obligation:
    chain = Chain("a weight once a sink is there", _setting(), q[k])
    return chain.unfold("the sink enlarges the normaliser", after, "softmax", *_SUNK).obligation()


def _dropped(after: Expr) -> Obligation:
    chain = Chain("a weight once the sink is gone", _setting(), p[k])
    return chain.unfold("the normaliser loses the sink", after, "softmax", *_SUNK).obligation()


_SUNK = ("softmax with sink", "weight of the sink")


def _rest(after: Expr) -> Obligation:
    chain = Chain("what the sink leaves", _setting(), 1 - share)
    return chain.unfold("the other tokens' part of the normaliser", after, "weight of the sink").obligation()


def _output(after: Expr) -> Obligation:
    chain = Chain("the output with a sink of value 0", _setting(), over_tokens(q[j] * v[j]))
    return chain.unfold("every weight loses the same factor", after, "softmax", *_SUNK).obligation()


def parts() -> tuple[Part, ...]:
    """No zero weight, a sink added, a sink dropped, and the output."""
    return (
        Part(
            r"No weight vanishes, for any number of tokens: $p_k=e^{s_k/\tau}/Z=0$ contradicts"
            r" $e^{s_k/\tau}e^{-s_k/\tau}=1$ and $Z\cdot\frac1Z=1$. So no finite scores give the zero"
            r" vector.",
            (_never(Integer(0)),),
        ),
        Part(
            r"Adding a sink with score $\sigma$ and weight $p_\sigma$ multiplies every other weight by"
            r" $1-p_\sigma=Z/(e^{\sigma/\tau}+Z)>0$.",
            (_rest(partition / with_sink), _added(p[k] * (1 - share))),
        ),
        Part(
            r"Dropping the sink multiplies every remaining weight by $1/(1-p_\sigma)$.",
            (_dropped(q[k] / (1 - share)),),
        ),
        Part(
            r"With the value 0 at the sink the output is $(1-p_\sigma)\sum_jp_jv_j$: small when the sink"
            r" takes nearly all, and zero only if it was zero without the sink.",
            (_output((1 - share) * over_tokens(p[j] * v[j])),),
        ),
    )


CLAIM = Claim(
    id="softmax.no-null-output",
    title="Softmax cannot abstain: finite scores give no zero weight; a sink score scales the others down",
    statement=(
        r"No finite scores give a zero weight, so none give the zero vector. Adding a sink score multiplies"
        r" every other weight by $1-p_\sigma$, where $p_\sigma<1$ is the sink's weight; dropping the sink"
        r" multiplies every remaining weight by $1/(1-p_\sigma)$."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, every τ > 0, all finite scores",
    variables=(
        Variable("n", r"number of tokens besides the sink, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\sigma", r"score of the sink, $\mathbb{R}$"),
        Variable(r"\tau", "temperature, a real number > 0"),
    ),
    assumptions=(Assumption("exact arithmetic: in floating point a weight may underflow to zero"),),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant("one half", "the weight ½ excluded as 0 is", lambda: (_never(Rational(1, 2)),)),
        Mutant("lost share", "weights multiplied by the sink's weight", lambda: (_added(p[k] * share),)),
        Mutant("wrong way", "dropping the sink as adding it", lambda: (_dropped(q[k] * (1 - share)),)),
        Mutant("unscaled", "an output that ignores the sink", lambda: (_output(over_tokens(p[j] * v[j])),)),
    ),
    remark="A sink token is how a head abstains: its output can be as small as it likes, and zero"
    " only if it was zero without the sink.",
)
