"""The chunkwise form equals the recurrence, for every chunk size and every initial state.

Entry by entry, with D[j, t, c] for the product of the decays of channel c after token j up to and with
token t (a half-open range: D[t, t, c] = 1, nothing is divided by a decay) and u[t, d] for what token t
writes along its key. The state after token t of a chunk that began after token m is found by induction over
t; inserting it into u gives the rows of a unit lower triangular system, which is the UT form; reading it
gives the outputs. As m and t are free, every chunk size is covered, a shorter last chunk included. The same
in exact numbers, on literal inputs, for every chunk size.
"""

from collections.abc import Callable
from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.chunk._replay import DECAYS, GATES, ONES, in_numbers
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, t, m, r, c, d, e, f, K = symbols("j t m r c d e f K")
S, k, v, q, u = (IndexedBase(name) for name in ("S", "k", "v", "q", "u"))
D, E, alpha, beta, gate = (IndexedBase(name) for name in ("D", "E", r"\alpha", r"\beta", "a"))
U, W, delta, o = (IndexedBase(name) for name in ("U", "W", r"\Delta", "o"))

AFTER_START: dict[str, Any] = {
    "nonempty": (K,),
    "order": ((m + 1, t),),
    "instances": ({m: 0, t: 3, K: 2, c: 1, d: 1}, {m: 2, t: 4, K: 1, c: 1, d: 2}),
}
AT_START: dict[str, Any] = {"instances": ({m: 0, r: 2, c: 1, d: 1}, {m: 2, r: 3, c: 2, d: 1})}
no_decay = Definition("no decay yet", D[t, t, c], Integer(1), free=(t, c))
one_decay = Definition(
    "one more decay", D[j, t, c], alpha[t, c] * D[j, t - 1, c], free=(j, c), guards=((j, t - 1),)
)


def channels(summand: Expr) -> Sum:
    """Σ over the K channels e."""
    return Sum(summand, (e, 1, K))


held = channels(k[t, e] * alpha[t, e] * S[t - 1, e, d])
written = Definition("written", u[t, d], beta[t] * (v[t, d] - held))


def state(last: Expr, channel: Expr, first: Expr = m) -> Expr:
    """The state after token ``last`` of a chunk that began after token ``first``."""
    tokens = Sum(D[j, last, channel] * k[j, channel] * u[j, d], (j, first + 1, last))
    return D[first, last, channel] * S[first, channel, d] + tokens


def score(vector: IndexedBase, token: Expr = j) -> Sum:
    """Σ_e x[t, e]·D[j, t, e]·k[j, e]."""
    return Sum(vector[t, f] * D[token, t, f] * k[token, f], (f, 1, K))


def _step_as_write(sign: int) -> Obligation:
    setting = Setting((written,), **AFTER_START)
    erased = alpha[t, c] * S[t - 1, c, d] - beta[t] * k[t, c] * held
    chain = Chain("one entry of the KDA step", setting, erased + beta[t] * k[t, c] * v[t, d])
    after = alpha[t, c] * S[t - 1, c, d] + sign * k[t, c] * u[t, d]
    return chain.unfold("what is written along the key", after, "written").obligation()


def _state(rhs: Expr) -> Obligation:
    goal = Induction("the state inside a chunk", t, m, S[t, c, d], rhs)
    base = Chain("no token of the chunk yet", Setting((no_decay,), **AT_START), S[m, c, d])
    base = base.unfold("no decay, no token", rhs.subs(t, m), "no decay yet")
    recurrence = Definition("recurrence", S[t, c, d], alpha[t, c] * S[t - 1, c, d] + k[t, c] * u[t, d])
    setting = Setting((recurrence, goal.hypothesis, one_decay, no_decay), **AFTER_START)
    step = Chain("one more token", setting, S[t, c, d])
    step = step.unfold("decay and write", recurrence.rhs, "recurrence")
    newest = k[t, c] * u[t, d]
    earlier = alpha[t, c] * rhs.subs(t, t - 1) + newest
    step = step.unfold("the state so far", earlier, "induction hypothesis")
    tokens = Sum(D[j, t, c] * k[j, c] * u[j, d], (j, m + 1, t - 1))
    older = D[m, t, c] * S[m, c, d] + tokens
    step = step.unfold("every product takes one more decay", older + newest, "one more decay")
    step = step.unfold("the newest token has not decayed", older + D[t, t, c] * newest, "no decay yet")
    return goal.obligation(base, step.split("it joins the sum", rhs, t, t - 1))


def _row(matrix: Expr) -> Obligation:
    """Row t of (I + L)u = β(v − what the key reads from the first state)."""
    so_far = Definition("state so far", S[t - 1, c, d], state(t - 1, c), free=(c,))
    setting = Setting((written, so_far, one_decay), **AFTER_START)
    lower = beta[t] * Sum(matrix * u[j, d], (j, m + 1, t - 1))
    chain = Chain("one row of the triangular system", setting, u[t, d] + lower)
    chain = chain.unfold("what is written", beta[t] * (v[t, d] - held) + lower, "written")
    from_start = channels(k[t, e] * D[m, t, e] * S[m, e, d])
    after = beta[t] * (v[t, d] - from_start)
    return chain.unfold("the chunk's own tokens cancel", after, "state so far", "one more decay").obligation()


def _wy_rows() -> Obligation:
    tokens = (j, m + 1, t - 1)
    row_u = Definition("row of U", U[t, d], beta[t] * (v[t, d] - Sum(score(k) * U[j, d], tokens)))
    row_w = Definition(
        "row of W", W[t, c], beta[t] * (k[t, c] * D[m, t, c] - Sum(score(k) * W[j, c], tokens)), free=(c,)
    )
    setting = Setting((row_u, row_w), **AFTER_START)

    def new(token: Expr) -> Expr:
        return U[token, d] - channels(W[token, e] * S[m, e, d])

    chain = Chain("U − W·S solves the triangular system", setting, new(t))
    read = channels(k[t, e] * D[m, t, e] * S[m, e, d])
    after = beta[t] * (v[t, d] - read - Sum(score(k) * new(j), tokens))
    return chain.unfold("rows of U and W", after, "row of U", "row of W").obligation()


def _unique() -> Obligation:
    row = Definition("row", delta[t, d], -beta[t] * Sum(score(k) * delta[j, d], (j, m + 1, t - 1)))
    earlier = Definition("earlier rows agree", delta[j, d], Integer(0), free=(j,), guards=((j, t - 1),))
    setting = Setting((row, earlier), **AFTER_START)
    chain = Chain("two solutions that agree on earlier rows agree on this one", setting, delta[t, d])
    chain = chain.unfold("subtract the two rows", row.rhs, "row")
    return chain.unfold("earlier rows agree", Integer(0), "earlier rows agree").obligation()


def _output(after: Expr) -> Obligation:
    inside = Definition("state", S[t, c, d], state(t, c), free=(c,))
    setting = Setting((inside,), **AFTER_START)
    chain = Chain("the output", setting, channels(q[t, e] * S[t, e, d]))
    return chain.unfold("insert the state, exchange the sums", after, "state").obligation()


def _decays_compose() -> Obligation:
    goal = Induction("decays compose at any cut", t, r, D[m, t, c], D[m, r, c] * D[r, t, c])
    base = Chain("at the cut", Setting((no_decay,), **AT_START), D[m, r, c])
    base = base.unfold("no decay after the cut", goal.rhs.subs(t, r), "no decay yet")
    sizes = ({m: 0, r: 1, t: 3, c: 1}, {m: 1, r: 3, t: 6, c: 1})
    setting = Setting((one_decay, goal.hypothesis), order=((m, r), (r + 1, t)), instances=sizes)
    step = Chain("one more token", setting, D[m, t, c])
    step = step.unfold("one more decay", alpha[t, c] * D[m, t - 1, c], "one more decay")
    step = step.unfold("the product so far", alpha[t, c] * goal.rhs.subs(t, t - 1), "induction hypothesis")
    return goal.obligation(
        base, step.unfold("it belongs to the part after the cut", goal.rhs, "one more decay")
    )


def _chunks_compose() -> Obligation:
    first = Definition("first chunk", S[r, c, d], state(r, c))
    later = Definition("decay after the cut", E[t, c], D[r, t, c])
    cut = Definition("cut", D[j, t, c], D[j, r, c] * E[t, c], free=(j,), guards=((j, r),))
    sizes = ({m: 0, r: 2, t: 3, c: 1, d: 1}, {m: 1, r: 2, t: 4, c: 1, d: 1})
    setting = Setting((first, later, cut), order=((m, r), (r, t)), instances=sizes)
    chain = Chain("two chunks in a row are one", setting, state(t, c, r))
    second = Sum(D[j, t, c] * k[j, c] * u[j, d], (j, r + 1, t))
    named = E[t, c] * S[r, c, d] + second
    chain = chain.unfold("name the decay after the cut", named, "decay after the cut")
    chain = chain.unfold(
        "the state that the second chunk starts from", E[t, c] * first.rhs + second, "first chunk"
    )
    tokens = Sum(D[j, t, c] * k[j, c] * u[j, d], (j, m + 1, r))
    joined = D[m, t, c] * S[m, c, d] + tokens + second
    chain = chain.unfold("its decays go on into the second chunk", joined, "cut")
    return chain.split("one sum over both", state(t, c), t, r).obligation()


def _special(title: str, decay: Expr, after: Expr) -> Obligation:
    one_gate = Definition("gate", alpha[t, e], decay, free=(e,))
    setting = Setting((written, one_gate), **AFTER_START)
    chain = Chain(title, setting, alpha[t, c] * S[t - 1, c, d] + k[t, c] * u[t, d])
    return chain.unfold("insert what is written, and the gate", after, "written", "gate").obligation()


def _gdn(gated: Expr) -> Obligation:
    reads = channels(k[t, e] * S[t - 1, e, d])
    erased = gate[t] * (S[t - 1, c, d] - beta[t] * k[t, c] * reads)
    return _special("one gate for all channels is GDN", gate[t], gated * erased + beta[t] * k[t, c] * v[t, d])


def _delta_rule() -> Obligation:
    reads = channels(k[t, e] * S[t - 1, e, d])
    after = S[t - 1, c, d] + beta[t] * k[t, c] * (v[t, d] - reads)
    return _special("no decay is the delta rule", Integer(1), after)


def _linear() -> Obligation:
    plain = Definition("nothing erased", u[t, d], v[t, d])
    ones = Definition("no decay", alpha[t, e], Integer(1), free=(e,))
    setting = Setting((plain, ones), **AFTER_START)
    chain = Chain(
        "without erasing it is linear attention", setting, alpha[t, c] * S[t - 1, c, d] + k[t, c] * u[t, d]
    )
    after = S[t - 1, c, d] + k[t, c] * v[t, d]
    return chain.unfold("what is written is the value", after, "nothing erased", "no decay").obligation()


def parts() -> tuple[Part, ...]:
    """Step, state, triangular system and its solution, outputs, composition, special cases, numbers."""
    return (
        Part(
            r"KDA's step $S_t=(I-\beta_tk_tk_t^\top)\mathrm{Diag}(\alpha_t)S_{t-1}+\beta_tk_tv_t^\top$ is"
            r" $\mathrm{Diag}(\alpha_t)S_{t-1}+k_tu_t^\top$ with"
            r" $u_t=\beta_t(v_t-(\mathrm{Diag}(\alpha_t)S_{t-1})^\top k_t)$.",
            (_step_as_write(1),),
        ),
        Part(
            r"In a chunk that begins after token $m$, for every $t\ge m$: $S_t=D_{m\to t}\odot"
            r" S_m+\sum_{j=m+1}^t(D_{j\to t}\odot k_j)u_j^\top$ (induction on $t$; nothing is used about"
            r" $u$).",
            (_state(state(t, c)),),
        ),
        Part(
            r"Hence $(I+L)u=\mathrm{Diag}(\beta)(V-(D_{m\to t}\odot k_t)_t\,S_m)$ with"
            r" $L_{tj}=\beta_t\,k_t^\top(D_{j\to t}\odot k_j)$ for $j<t$. The system is unit lower"
            r" triangular, so two solutions agree row after row (the first row has an empty sum): there is"
            r" one, and $u=U-WS_m$ with the rows of the UT form, $U=(I+L)^{-1}\mathrm{Diag}(\beta)V$ and"
            r" $W=(I+L)^{-1}\mathrm{Diag}(\beta)(D_{m\to t}\odot k_t)_t$.",
            (_row(score(k)), _wy_rows(), _unique()),
        ),
        Part(
            r"The outputs are $o_t=S_m^\top(D_{m\to t}\odot q_t)+\sum_{j=m+1}^t q_t^\top(D_{j\to t}\odot"
            r" k_j)\,u_j$.",
            (_output(channels(q[t, e] * D[m, t, e] * S[m, e, d]) + Sum(score(q) * u[j, d], (j, m + 1, t))),),
        ),
        Part(
            r"$D_{m\to t}=D_{m\to r}\odot D_{r\to t}$ for $m\le r\le t$, and two chunks in a row, cut"
            r" anywhere, give what one chunk gives. So by induction over the chunks every chunk size gives"
            r" the recurrence; a shorter last chunk is the same statement with fewer rows.",
            (_decays_compose(), _chunks_compose()),
        ),
        Part(
            r"GDN is the case of equal decays in all channels, the delta rule that of decay 1, linear"
            r" attention that of $u=v$ and decay 1.",
            (_gdn(Integer(1)), _delta_rule(), _linear()),
        ),
        Part(
            r"The definitions agree in exact numbers on 7 literal tokens from a nonzero state, for every"
            r" chunk size from 1 to 8 (3, for one, does not divide 7), with decays of 0 and 1 and strengths"
            r" of $-1$, 0 and 2 among them.",
            (
                in_numbers("KDA", DECAYS, erases=True),
                in_numbers("GDN", GATES, erases=True),
                in_numbers("delta rule", ONES, erases=True),
                in_numbers("linear attention", ONES, erases=False),
            ),
        ),
    )


def _late(builder: Callable[[Expr], Obligation], wrong: Expr) -> Callable[[], tuple[Obligation, ...]]:
    return lambda: (builder(wrong),)


WITHOUT_DECAY = Sum(k[t, f] * k[j, f], (f, 1, K))
MISSING_DIAGONAL = channels(q[t, e] * D[m, t, e] * S[m, e, d]) + Sum(score(q) * u[j, d], (j, m + 1, t - 1))
ONE_STEP_SHORT = D[m, t, c] * S[m, c, d] + Sum(D[j - 1, t, c] * k[j, c] * u[j, d], (j, m + 1, t))

CLAIM = Claim(
    id="chunk.equals-recurrent",
    title="The chunkwise form equals the recurrence, for every chunk size and every initial state",
    statement=(
        r"Cut T tokens into chunks of C (the last may be shorter). With $D_{j\to t}$ the channelwise product"
        r" of the decays of tokens $j+1,\dots,t$, computing each chunk from the state before it by"
        r" $u=(I+L)^{-1}\mathrm{Diag}(\beta)(V-(D_{m\to t}\odot k_t)_tS_m)$, $o_t=S_m^\top(D_{m\to t}\odot"
        r" q_t)+\sum_{m<j\le t}q_t^\top(D_{j\to t}\odot k_j)u_j$ and $S\leftarrow D_{m\to t}\odot"
        r" S_m+\sum_j(D_{j\to t}\odot k_j)u_j^\top$ gives exactly the outputs and states of the recurrence:"
        r" KDA, hence GDN, the delta rule and linear attention."
    ),
    source="article A, section 3; article D",
    status=Status.AS_PRINTED,
    scope="every T, every C ≥ 1 (dividing T or not), all K, V, initial states, real decays and strengths",
    variables=(
        Variable("m, r, t", r"tokens, integers with $m\le r\le t$; the chunk begins after token $m$"),
        Variable("k_t, q_t", r"key and query, $\mathbb{R}^K$; a scale is part of $q$"),
        Variable("v_t", r"value, $\mathbb{R}^V$, one coordinate $d$ at a time"),
        Variable(r"\alpha_t", r"decay, $\mathbb{R}^K$ (no sign needed; zero allowed)"),
        Variable(r"\beta_t", r"write strength, $\mathbb{R}$"),
        Variable("S_m", r"state before the chunk, $\mathbb{R}^{K\times V}$"),
    ),
    assumptions=(Assumption("exact arithmetic"),),
    asked="KCE",
    parts=parts,
    mutants=(
        Mutant("decay one step early", "the state with D[j−1, t] on token j", _late(_state, ONE_STEP_SHORT)),
        Mutant("no decay in the scores", "the triangular system with L = βkkᵀ", _late(_row, WITHOUT_DECAY)),
        Mutant(
            "strict output mask", "outputs that do not see their own token", _late(_output, MISSING_DIAGONAL)
        ),
        Mutant("gate on the write too", "GDN's decay applied twice", _late(_gdn, gate[t])),
        Mutant(
            "decays of the next token",
            "the chunkwise form in numbers with its decays shifted by one token",
            lambda: (in_numbers("KDA", DECAYS, erases=True, lag=1),),
        ),
    ),
    remark=(
        "Written with quotients of cumulative products the chunk form needs nonzero decays and overflows;"
        " products over half-open ranges need neither."
    ),
)
