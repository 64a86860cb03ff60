"""The state of the exact recurrence depends on the query."""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, exp, log, symbols

from counterexamples.gdn._construct import bounded
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, t, T, scale, q, x, y = symbols("j t T epsilon q x y")
s, v, W = (IndexedBase(name) for name in ("s", "v", "W"))


def _two_tokens(after: Expr) -> Obligation:
    """Outputs of two queries over two tokens; x, y: ratio of the second weight to the first."""
    first, second = symbols("v_1 v_2")
    setting = Setting(positive=(x, y))
    start = (first + x * second) / (1 + x) - (first + y * second) / (1 + y)
    chain = Chain("the states of two queries after two tokens, subtracted", setting, start)
    return chain.rearrange("over a common denominator", after * (second - first)).obligation()


def _state(query: int, after: Expr) -> Obligation:
    """Keys 0 and ln 2, values 0 and 1."""
    setting = Setting((Definition("query", q, Integer(query)),))
    keys = (Integer(0), log(2))
    start = exp(q * keys[1]) / (exp(q * keys[0]) + exp(q * keys[1]))
    chain = Chain(f"the state of the query {query}", setting, start)
    return chain.unfold("e^{ln 2} = 2", after, "query").obligation()


def _witness(**bounds: str) -> Obligation:
    term = x / (1 + x) - x**2 / (1 + x**2)
    label = "state of query 1 minus that of query 2, weights 1 and x^q with x = e^{ln 2} = 2"
    return bounded(label, term, {x: 2}, "E", **bounds)


def _moves() -> Obligation:
    total, read, along = (Sum(exp(scale * s[j]) * item, (j, 1, t)) for item in (Integer(1), v[j], s[j]))
    mixed = Sum(exp(scale * s[j]) * s[j] * v[j], (j, 1, t))
    setting = Setting(nonempty=(t,), instances=({t: 2}, {t: 4}))
    chain = Chain("the state as the query is scaled", setting, read / total)
    after = mixed / total - along * read / total**2
    return chain.differentiate("quotient rule", after, scale).obligation()


def _updates(total: Expr) -> Obligation:
    goal = Induction("updates for T queries", T, Integer(1), W[T], total)
    start = Definition("start", W[1], Integer(1))
    base = Chain("T = 1", Setting((start,)), W[1]).unfold("one update", Integer(1), "start")
    base = base.rearrange("arithmetic", goal.rhs.subs(T, 1))
    one_more = Definition("one more query", W[T], W[T - 1] + T)
    setting = Setting((one_more, goal.hypothesis), instances=({T: 2}, {T: 5}))
    step = Chain("T − 1 to T", setting, W[T])
    step = step.unfold("the newest query reads all T tokens", W[T - 1] + T, "one more query")
    return goal.obligation(base, step.unfold("the count so far", total, "induction hypothesis"))


def _quadratic() -> tuple[Obligation, Obligation]:
    setting = Setting(nonempty=(T,), instances=({T: 1}, {T: 5}))
    count = T * (T + 1) / 2
    low = Chain("above T²/2", setting, count - T**2 / 2).rearrange("arithmetic", T / 2)
    high = Chain("not above T²", setting, T**2 - count).rearrange("arithmetic", T * (T - 1) / 2)
    return low.obligation(), high.obligation()


def parts() -> tuple[Part, ...]:
    """The witness, two tokens in general, t tokens, and the count."""
    return (
        Part(
            r"One history, keys $0,\ln2$ and values $0,1$: the query $1$ has the state $\tfrac23$, the query"
            r" $2$ has $\tfrac45$.",
            (
                _state(1, Rational(2, 3)),
                _state(2, Rational(4, 5)),
                _witness(above="-3/20", below="-13/100"),
            ),
        ),
        Part(
            r"After two tokens the states of two queries differ by $(v_2-v_1)\tfrac{x-y}{(1+x)(1+y)}$ with"
            r" $x=e^{q\cdot(k_2-k_1)}$, $y=e^{q'\cdot(k_2-k_1)}$: they agree only if $v_1=v_2$ or the two"
            r" queries score $k_2-k_1$ alike.",
            (_two_tokens((x - y) / ((1 + x) * (1 + y))),),
        ),
        Part(
            r"After $t$ tokens, scaling the query by $\varepsilon$ moves the state at the rate of the"
            r" covariance of scores and values under the current weights.",
            (_moves(),),
        ),
        Part(
            r"With one state per query, the newest of which reads all $t$ tokens so far, $T$ queries take"
            r" $T(T+1)/2$ updates, between $T^2/2$ and $T^2$.",
            (_updates(T * (T + 1) / 2), *_quadratic()),
        ),
    )


CLAIM = Claim(
    id="gdn.query-dependence",
    title="The state of the exact recurrence depends on the query",
    statement=(
        r"The state $o_{t-1}$ of the exact recurrence $o_t=o_{t-1}+a_t(v_t-o_{t-1})$ depends on the query:"
        r" one history, keys $0,\ln2$ and values $0,1$, gives $\tfrac23$ for $q=1$ and $\tfrac45$ for $q=2$."
        r" So in general every query needs a run of its own, and $T$ causal queries through this recurrence"
        r" take $T(T+1)/2=\Theta(T^2)$ updates."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="the witness; all two-token histories; the count for every T",
    variables=(
        Variable("q,q'", r"two queries, $\mathbb{R}^K$"),
        Variable("s_j,v_j", r"score and one value coordinate of token $j$, $\mathbb{R}$"),
        Variable("T", r"number of tokens, each with its query, an integer $\ge1$"),
    ),
    assumptions=(
        Assumption("one run per query, none shared"),
        Assumption("the count is of updates of this recurrence, not a lower bound on computing attention"),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant(
            "one state for all",
            "the query 2 claimed to have the state 2/3",
            lambda: (_state(2, Rational(2, 3)),),
        ),
        Mutant("states ordered wrongly", "the difference claimed positive", lambda: (_witness(above="0"),)),
        Mutant("no difference", "two queries claimed to agree", lambda: (_two_tokens(Integer(0)),)),
        Mutant("linear cost", "2T − 1 updates", lambda: (_updates(2 * T - 1),)),
    ),
    remark="A delta rule whose key is the scalar 1 and whose gate is a_t: the gate knows the query.",
    counterexample=Counterexample(
        fails=(
            "$o_t=o_{t-1}+a_t(v_t-o_{t-1})$ is a recurrence with a state of fixed size, so softmax "
            "attention costs as little per token as a linear recurrence."
        ),
        believed="It is exact, its state has the size of one value, and each step is one update.",
        catch=(
            "$a_t$ and every $o_{t-1}$ before it are those of one query. A new query finds nothing "
            "it can use: two queries over one history have different states, and $T$ queries over "
            "$T$ tokens take $T(T+1)/2$ updates."
        ),
        gap=r"$\frac23$ against $\frac45$, exactly $\frac2{15}$ apart, for the queries 1 and 2.",
        witness=(
            "the state of the query 1",
            "the state of the query 2",
            "state of query 1 minus that of query 2, weights 1 and x^q with x = e^{ln 2} = 2",
        ),
        smallest=(
            "Two tokens are the fewest: after one the state is its value, whatever the query. The "
            "witness was made by hand, so that the states are rational."
        ),
        repair="An approximation whose state does not depend on the query.",
        repaired_by=("gdn.affine-obstruction", "gdn.drop-gives-vanilla"),
    ),
)
