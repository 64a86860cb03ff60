"""The delta rule depends on the order of its writes."""

from sympy import Expr, IndexedBase, Rational, Sum, Symbol, symbols

from counterexamples._smt import query
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

K, a, b, c, i, j, t, m = symbols("K a b c i j t m", integer=True, positive=True)
b1, b2, beta, s0, r, later = symbols("beta1 beta2 beta S0 r later")
k1, k2, v1, v2, s, x, f = (IndexedBase(name) for name in ("k1", "k2", "v1", "v2", "S", "x", "f"))
first, second, sequel, reverse = (IndexedBase(name) for name in ("W1", "W2", "W21", "W12"))

SIZES: tuple[dict[Symbol, int], ...] = ({K: 2, a: 1, c: 1}, {K: 3, a: 2, c: 1})


def _dot(left: IndexedBase, right: IndexedBase) -> Expr:
    return Sum(left[j] * right[j], (j, 1, K))


def _error(key: IndexedBase, value: IndexedBase, state: IndexedBase) -> Expr:
    return Sum(key[i] * state[i, c], (i, 1, K)) - value[c]


def _written(key: IndexedBase, value: IndexedBase, strength: Symbol, state: IndexedBase) -> Expr:
    return state[a, c] - strength * key[a] * _error(key, value, state)


def _scalar(difference: Expr) -> Obligation:
    """Two writes of one strength under the scalar key 1, from the state s₀."""
    one, two, one_two, two_one = symbols("one two one_two two_one")
    first_value, second_value = symbols("v1 v2")
    setting = Setting(
        definitions=(
            Definition("v₁ written", one, s0 - beta * (s0 - first_value)),
            Definition("then v₂", one_two, one - beta * (one - second_value)),
            Definition("v₂ written", two, s0 - beta * (s0 - second_value)),
            Definition("then v₁", two_one, two - beta * (two - first_value)),
        )
    )
    chain = Chain("scalar key 1: the two orders", setting, one_two - two_one)
    chain = chain.unfold(
        "the last writes",
        (1 - beta) * (one - two) + beta * (second_value - first_value),
        "then v₂",
        "then v₁",
    )
    chain = chain.unfold(
        "the first writes", difference * (second_value - first_value), "v₁ written", "v₂ written"
    )
    return chain.obligation()


def _last_write(strength: Expr | int, after: Expr) -> Obligation:
    first_value, second_value, one, end = symbols("v1 v2 one end")
    setting = Setting(
        definitions=(
            Definition("v₁ written", one, s0 - strength * (s0 - first_value)),
            Definition("then v₂", end, one - strength * (one - second_value)),
        )
    )
    chain = Chain(f"scalar key 1: the state after both writes at β = {strength}", setting, end)
    return chain.unfold("both writes, in order", after, "then v₂", "v₁ written").obligation()


def _replay(beta_text: str, output: list[str]) -> Obligation:
    data = {
        "writes": [
            {"beta": beta_text, "key": ["1"], "value": ["1", "0"]},
            {"beta": beta_text, "key": ["1"], "value": ["0", "1"]},
        ],
        "query": ["1"],
        "output": output,
        "unit": True,
    }
    label = f"key 1 written twice at β = {beta_text}: the coefficients of v₁ and v₂ read back"
    return Obligation("delta-read", label, "E", data)


def _last_write_wins(condition: str) -> Obligation:
    body = f"""
(declare-const beta Real)(declare-const v1 Real)(declare-const v2 Real)
(assert (not (= v1 0.0)))
(assert (not (= v2 (* beta v1))))
(assert (= (+ (* (- 1.0 beta) beta v1) (* beta v2)) v2))
(assert {condition})"""
    return query("from the zero state the last write wins exactly only at β = 1", "QF_NRA", body)


def _commutator(sign: int) -> Obligation:
    """Erase factors applied to any vector x, entry a."""
    erased1, erased2, both12, both21 = (IndexedBase(name) for name in ("E1", "E2", "E12", "E21"))
    setting = Setting(
        definitions=(
            Definition("first erase", erased1[a], x[a] - b1 * k1[a] * Sum(k1[i] * x[i], (i, 1, K)), (a,)),
            Definition("second erase", erased2[a], x[a] - b2 * k2[a] * Sum(k2[i] * x[i], (i, 1, K)), (a,)),
            Definition(
                "first after second",
                both12[a],
                erased2[a] - b1 * k1[a] * Sum(k1[j] * erased2[j], (j, 1, K)),
                (a,),
            ),
            Definition(
                "second after first",
                both21[a],
                erased1[a] - b2 * k2[a] * Sum(k2[j] * erased1[j], (j, 1, K)),
                (a,),
            ),
        ),
        instances=({K: 2, a: 1}, {K: 3, a: 2}),
    )
    chain = Chain("the commutator of two erase factors, applied to x", setting, both12[a] - both21[a])
    minors = Sum((k1[a] * k2[b] + sign * k2[a] * k1[b]) * x[b], (b, 1, K))
    chain = chain.unfold(
        "multiply out",
        b1 * b2 * _dot(k1, k2) * minors,
        "first after second",
        "second after first",
        "first erase",
        "second erase",
    )
    return chain.obligation()


def _writes(strengths: Expr) -> Obligation:
    """Both orders of two full writes to one state S, entry (a, c)."""
    setting = Setting(
        definitions=(
            Definition("first write", first[a, c], _written(k1, v1, b1, s), (a, c)),
            Definition("second write", second[a, c], _written(k2, v2, b2, s), (a, c)),
            Definition("first, then second", sequel[a, c], _written(k2, v2, b2, first), (a, c)),
            Definition("second, then first", reverse[a, c], _written(k1, v1, b1, second), (a, c)),
        ),
        instances=SIZES,
    )
    chain = Chain("the two orders of two writes", setting, reverse[a, c] - sequel[a, c])
    apart = k1[a] * _error(k2, v2, s) - k2[a] * _error(k1, v1, s)
    names = ("first, then second", "second, then first", "first write", "second write")
    return chain.unfold("multiply out", strengths * _dot(k1, k2) * apart, *names).obligation()


def _parallel_keys(remains: Expr) -> Obligation:
    """What the two orders differ by, up to β₁β₂(k₁·k₂), when k₂ = r k₁; entry (a, c)."""
    setting = Setting(definitions=(Definition("parallel", k2[i], r * k1[i], (i,)),), instances=SIZES)
    apart = k1[a] * _error(k2, v2, s) - k2[a] * _error(k1, v1, s)
    chain = Chain("k₁e₂ᵀ − k₂e₁ᵀ for parallel keys", setting, apart)
    return chain.unfold("the state cancels", k1[a] * remains, "parallel").obligation()


def _parallel() -> Obligation:
    """When the commutator vanishes and the keys are not orthogonal, k₁ is a multiple of k₂."""
    setting = Setting(
        hypotheses=(Hypothesis("minor", k1[a] * k2[b], k2[a] * k1[b]),),
        nonzero=(k2[b],),
        instances=({a: 1, b: 2}, {a: 2, b: 1}),
    )
    chain = Chain("vanishing minors make the keys parallel", setting, k1[a])
    return chain.use("divide by a nonzero entry of k₂", (k1[b] / k2[b]) * k2[a], minor=1 / k2[b]).obligation()


COMMUTE = """
(declare-const p1 Real)(declare-const p2 Real)(declare-const q1 Real)(declare-const q2 Real)
(declare-const b1 Real)(declare-const b2 Real)
(define-fun a11 () Real (- 1.0 (* b1 p1 p1)))(define-fun a12 () Real (- (* b1 p1 p2)))
(define-fun a22 () Real (- 1.0 (* b1 p2 p2)))
(define-fun c11 () Real (- 1.0 (* b2 q1 q1)))(define-fun c12 () Real (- (* b2 q1 q2)))
(define-fun c22 () Real (- 1.0 (* b2 q2 q2)))
(assert (not (= b1 0.0)))
(assert (not (= b2 0.0)))
(assert (= (+ (* a11 c12) (* a12 c22)) (+ (* c11 a12) (* c12 a22))))
(assert (not (= (+ (* p1 q1) (* p2 q2)) 0.0)))
"""
"""Symmetric 2×2 factors A, C commute iff entry (1, 2) of AC and CA agrees; keys p, q not orthogonal."""
NOT_PARALLEL = "(assert (not (= (- (* p1 q2) (* p2 q1)) 0.0)))\n"


def _two_channels(body: str) -> Obligation:
    label = "K = 2: commuting erase factors of keys that are not orthogonal have parallel keys"
    return query(label, "QF_NRA", COMMUTE + body)


def _same_key_two_orders(second_output: list[str]) -> tuple[Obligation, ...]:
    def run(order: tuple[int, int], output: list[str]) -> Obligation:
        values = (["1", "0"], ["0", "1"])
        writes = [{"beta": "1", "key": ["1"], "value": values[place]} for place in order]
        data = {"writes": writes, "query": ["1"], "output": output, "unit": True}
        label = f"key 1, β = 1, values in the order {order[0] + 1}, {order[1] + 1}"
        return Obligation("delta-read", label, "E", data)

    return run((0, 1), ["0", "1"]), run((1, 0), second_output)


def _softmax_order(swapped: Expr) -> Obligation:
    """A softmax sum with tokens m and m + 1 exchanged; ``later`` is the sum over all later tokens."""
    setting = Setting(nonempty=(m, m + 1), instances=({m: 1}, {m: 3}))
    start = Sum(f[t], (t, 1, m - 1)) + swapped + later
    chain = Chain("exchanging two neighbouring tokens in a softmax sum", setting, start)
    joined = Sum(f[t], (t, 1, m)) + f[m + 1] + later
    chain = chain.split("token m joins its predecessors", joined, m, m - 1)
    return chain.split("token m + 1 follows", Sum(f[t], (t, 1, m + 1)) + later, m + 1, m).obligation()


def _signs_last_write() -> Obligation:
    """The state minus v₂ is (β − 1)(v₂ − βv₁)."""
    factored = "(- (* (- beta 1.0) (- v2 (* beta v1))))"
    case = (term(1, 1, 3, 3), term(2, times=factored))
    return contradiction(_last_write_wins("(not (= beta 1.0))"), case)


def _signs_two_channels() -> Obligation:
    """The entry of the commutator is b₁b₂(p·q)(p₁q₂ − p₂q₁)."""
    factored = "(- (* b1 b2 (+ (* p1 q1) (* p2 q2)) (- (* p1 q2) (* p2 q1))))"
    case = (term(0, 0, 1, 1, 3, 3, 4, 4), term(2, times=factored))
    return contradiction(_two_channels(NOT_PARALLEL), case)


def parts() -> tuple[Part, ...]:
    """The scalar case, the general difference, when the orders agree, and softmax."""
    v_1, v_2 = symbols("v1 v2")
    return (
        Part(
            r"Scalar key 1, strength $\beta$: the two orders differ by $\beta^2(v_2-v_1)$, from any state.",
            (_scalar(beta**2),),
        ),
        Part(
            r"$\beta=1$ is last-write-wins exactly, from any state; and from the zero state, for"
            r" $v_1\ne0$ and $v_2\ne\beta v_1$, no other $\beta$ is.",
            (_last_write(1, v_2), _last_write_wins("(not (= beta 1.0))"), _signs_last_write()),
        ),
        Part(
            r"$\beta=0.98$ gives exactly the last write (printed).",
            (_replay("49/50", ["49/2500", "49/50"]),),
            refutes=True,
        ),
        Part(
            r"From the zero state $\beta=0.98$ gives $0.98v_2+0.0196v_1$.",
            (_last_write(Rational(49, 50), v_2 * Rational(49, 50) + v_1 * Rational(49, 2500) + s0 / 2500),),
        ),
        Part(
            r"$[I-\beta_1k_1k_1^\top,\,I-\beta_2k_2k_2^\top]=\beta_1\beta_2(k_1\cdot"
            r" k_2)(k_1k_2^\top-k_2k_1^\top)$ for every $K$.",
            (_commutator(-1),),
        ),
        Part(
            r"Erase factors with $\beta_1\beta_2\ne0$ commute iff the keys are orthogonal or parallel:"
            r" otherwise every minor $k_{1a}k_{2b}-k_{2a}k_{1b}$ vanishes, so $k_1=(k_{1b}/k_{2b})k_2$ for"
            r" an entry $k_{2b}\ne0$.",
            (_parallel(), _two_channels(NOT_PARALLEL), _signs_two_channels()),
        ),
        Part(
            r"Two full writes with errors $e_i=S^\top k_i-v_i$ differ, first after second minus second"
            r" after first, by $\beta_1\beta_2(k_1\cdot k_2)(k_1e_2^\top-k_2e_1^\top)$, for every $K$, $V$"
            r" and state $S$.",
            (_writes(b1 * b2),),
        ),
        Part(
            r"For parallel keys $k_2=rk_1$ that is $\beta_1\beta_2(k_1\cdot k_2)\,k_1(rv_1-v_2)^\top$,"
            r" whatever the state: such writes commute iff $v_2=rv_1$ (or $\beta_1\beta_2(k_1\cdot"
            r" k_2)k_1=0$).",
            (_parallel_keys(r * v1[c] - v2[c]),),
        ),
        Part(
            r"Two writes commute as soon as their keys are parallel (true of their erase factors only).",
            _same_key_two_orders(["1", "0"]),
            refutes=True,
        ),
        Part(
            r"Softmax attention does not depend on the order: its numerator and denominator are finite"
            r" sums over the tokens, and exchanging neighbours (which generates every permutation) changes"
            r" neither.",
            (_softmax_order(f[m + 1] + f[m]),),
        ),
    )


CLAIM = Claim(
    id="delta.order",
    title="The delta rule depends on the order of its writes",
    statement=r"Writes $W_i(S)=S-\beta_ik_ie_i^\top$ with $e_i=S^\top k_i-v_i$ satisfy"
    r" $W_1W_2(S)-W_2W_1(S)=\beta_1\beta_2(k_1\cdot k_2)(k_1e_2^\top-k_2e_1^\top)$; for the scalar key 1"
    r" that is $\beta^2(v_1-v_2)$. Their erase factors commute iff $\beta_1\beta_2=0$ or the keys are"
    r" orthogonal or parallel; the writes themselves commute on every state only if, beyond that, parallel"
    r" keys $k_2=ck_1\ne0$ carry $v_2=cv_1$. Softmax attention is free of order.",
    source="article A, section 3",
    status=Status.CORRECTED,
    scope="every key width K, value width V, real β, any state",
    variables=(
        Variable(r"k_1,k_2", r"\mathbb{R}^K"),
        Variable(r"v_1,v_2", r"\mathbb{R}^V"),
        Variable(r"\beta_1,\beta_2", r"\mathbb{R}"),
        Variable("S", r"\mathbb{R}^{K\times V}"),
    ),
    assumptions=(
        Assumption("exact arithmetic; the two writes follow one another without decay between them"),
        Assumption("for softmax: no positional term in the scores"),
    ),
    asked="KES",
    parts=parts,
    mutants=(
        Mutant("one β", "the scalar orders differing by β(v₂ − v₁)", lambda: (_scalar(beta),)),
        Mutant("printed", "β = 0.98 leaving nothing of the first", lambda: (_replay("49/50", ["0", "1"]),)),
        Mutant("sign flipped", "the commutator with a symmetric right side", lambda: (_commutator(1),)),
        Mutant("one β in the writes", "the writes differing by β₁ alone", lambda: (_writes(b1),)),
        Mutant("factor lost", "parallel keys with v₁ − v₂", lambda: (_parallel_keys(v1[c] - v2[c]),)),
        Mutant("parallel forgotten", "K = 2: commuting means orthogonal", lambda: (_two_channels(""),)),
        Mutant(
            "β = 1 allowed",
            "no strength at all lets the last write win",
            lambda: (_last_write_wins("true"),),
        ),
        Mutant("orders alike", "both orders giving one read", lambda: _same_key_two_orders(["0", "1"])),
        Mutant(
            "token counted twice",
            "the exchange that puts token m in both places",
            lambda: (_softmax_order(2 * f[m]),),
        ),
    ),
    remark="«Keys orthogonal or parallel» is right for the erase factors; the writes need the values too.",
    counterexample=Counterexample(
        fails=(
            r"Two writes under one key with $\beta=0.98$ leave exactly the last value; and two writes "
            "commute as soon as their keys are orthogonal or parallel."
        ),
        believed=(
            r"At $\beta=1$ the last write does win exactly; and the erase factors $I-\beta kk^\top$ "
            "of parallel keys do commute, since they are functions of one matrix."
        ),
        catch=(
            r"At $\beta=0.98$ the state is $0.98v_2+0.0196v_1$: the second write keeps $0.02$ of the "
            "$0.98v_1$ it finds. And a write is an erase and an addition: with equal keys the "
            "factors commute but the writes do not, unless the values agree."
        ),
        gap=(
            "Exactly $0.0196$ of the first value, where nothing was to be left; and for two orders "
            r"under the key 1 at $\beta=1$, reads exactly $v_2-v_1$ apart."
        ),
        witness=(
            "key 1 written twice at β = 49/50: the coefficients of v₁ and v₂ read back",
            "key 1, β = 1, values in the order 1, 2",
            "key 1, β = 1, values in the order 2, 1",
        ),
        smallest=(
            "For the printed strength the scalar key 1 is the smallest there is. For two orders the "
            "search goes up in key width and in the denominators of key and strength, and finds the "
            "scalar key 1 at β = 1 first."
        ),
        repair=(
            r"The exact difference of the two orders, for every key and value width. With $e=S^\top "
            r"k-v$, the error each write sees, it is $\beta_1\beta_2(k_1\cdot "
            r"k_2)(k_1e_2^\top-k_2e_1^\top)$."
        ),
        repaired_by=("delta.order",),
        search="counterexamples.delta._search:two_orders",
    ),
)
