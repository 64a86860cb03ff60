"""What a token still contributes is capped by the decays since, and no query can raise it.

The state at time t is the sum of w_j v_jᵀ, where w_j starts as β_j k_j and every later step carries it on, so
token j contributes (q·w_j)v_j to the output. For one token: w_i = (I − β_i k_i k_iᵀ)Diag(α_i)w_{i−1}. Each
step leaves at most a_i² of the squared length, a_i being any cap on the decays of its channels; by induction
the caps multiply up, and the inequality of Cauchy and Schwarz turns the length into the largest output any
query of a given length can read.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.kda import _contraction as contraction
from derivations.kda._contraction import cap, norm
from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, c, i, j, t, e, K = symbols("a c i j t e K")
product, lost = IndexedBase("P"), IndexedBase("R")
left = symbols("F")
query, values, read, start, end, share, defect = symbols("Q V X N_j N_t P_t D")
strength, key, decay, value, state, kept, read_by = (
    IndexedBase(name) for name in (r"\beta", "k", r"\alpha", "v", "S", "w", "q")
)
no_step = Definition("no step yet", product[i, i], Integer(1), (i,))
one_more = Definition("one step more", product[i, t], cap[t] ** 2 * product[i, t - 1], (i,), ((i, t - 1),))


def _erased(before: Expr) -> Expr:
    """Entry a of (I − β_t k_t k_tᵀ)Diag(α_t) applied to what has the entries ``before``."""
    inside = Sum(key[t, e] * decay[t, e] * before.subs(a, e), (e, 1, K))
    return decay[t, a] * before - strength[t] * key[t, a] * inside


def _state(newest: int) -> Obligation:
    """S_t = Σ_{j≤t} w_{j,t} v_jᵀ, entry (a, c), with w_{t,t} = β_t k_t."""
    rhs = Sum(kept[j, t, a] * value[j, c], (j, 1, t))
    goal = Induction("the state in what its writes became", t, Integer(0), state[t, a, c], rhs, free=(a,))
    zero = Definition("zero state", state[0, a, c], Integer(0), (a,))
    base = Chain("no write", Setting((zero,), instances=({a: 1, c: 1},)), state[0, a, c])
    base = base.unfold("an empty sum", goal.rhs.subs(t, 0), "zero state")
    written = newest * strength[t] * key[t, a] * value[t, c]
    write = Definition("write", state[t, a, c], _erased(state[t - 1, a, c]) + written, (a,))
    fresh = Definition("fresh", kept[t, t, a], strength[t] * key[t, a], (a,))
    later = Definition("carried on", kept[j, t, a], _erased(kept[j, t - 1, a]), (j, a), ((j, t - 1),))
    sizes = ({t: 2, K: 2, a: 1, c: 1}, {t: 3, K: 2, a: 2, c: 1})
    setting = Setting((write, goal.hypothesis, later, fresh), order=((1, t),), instances=sizes)
    step = Chain("one write more", setting, state[t, a, c])
    step = step.unfold("the newest write", write.rhs, "write")
    so_far = _erased(goal.rhs.subs(t, t - 1)) + written
    step = step.unfold("the state so far", so_far, "induction hypothesis")
    before = Sum(kept[j, t, a] * value[j, c], (j, 1, t - 1))
    step = step.unfold("each part is carried on", before + written, "carried on")
    step = step.unfold("the newest is fresh", before + newest * kept[t, t, a] * value[t, c], "fresh")
    return goal.obligation(base, step.split("it joins the sum", rhs, t, t - 1))


def _contributions() -> Obligation:
    """o = S_tᵀq = Σ_j (q·w_{j,t})v_j, coordinate c."""
    known = Definition("state", state[t, e, c], Sum(kept[j, t, e] * value[j, c], (j, 1, t)), (e,))
    setting = Setting((known,), order=((1, t),), instances=({t: 2, K: 2, c: 1}, {t: 3, K: 2, c: 1}))
    chain = Chain("reading a query", setting, Sum(read_by[e] * state[t, e, c], (e, 1, K)))
    parts_of = Sum(Sum(read_by[e] * kept[j, t, e], (e, 1, K)) * value[j, c], (j, 1, t))
    return chain.unfold("exchange the sums", parts_of, "state").obligation()


def _carried(newest: Expr) -> Obligation:
    """N[t] = P[j, t]N[j] − Σ_{j<i≤t} P[i, t]R[i], with P the squared caps' products and R what is lost."""
    goal_rhs = product[j, t] * norm[j] - Sum(product[i, t] * lost[i], (i, j + 1, t))
    goal = Induction("the caps multiply up", t, j, norm[t], goal_rhs)
    base = Chain("no step yet", Setting((no_step,), instances=({j: 0}, {j: 2})), norm[j])
    base = base.unfold("an empty product and an empty sum", goal_rhs.subs(t, j), "no step yet")
    taken = Definition("step", norm[t], newest * norm[t - 1] - lost[t])
    sizes = ({j: 0, t: 2}, {j: 1, t: 4})
    setting = Setting((taken, goal.hypothesis, one_more, no_step), order=((j + 1, t),), instances=sizes)
    step = Chain("one step more", setting, norm[t])
    step = step.unfold("the newest cap", newest * norm[t - 1] - lost[t], "step")
    older = cap[t] ** 2 * goal_rhs.subs(t, t - 1) - lost[t]
    step = step.unfold("the steps before", older, "induction hypothesis")
    before = Sum(product[i, t] * lost[i], (i, j + 1, t - 1))
    grown = product[j, t] * norm[j] - before - lost[t]
    step = step.unfold("every product takes one more cap", grown, "one step more")
    ended = product[j, t] * norm[j] - before - product[t, t] * lost[t]
    step = step.unfold("the newest loss has not decayed", ended, "no step yet")
    return goal.obligation(base, step.split("it joins the sum", goal_rhs, t, t - 1))


def _capped() -> Obligation:
    total = Sum(product[i, t] * lost[i], (i, j + 1, t))
    carried = Definition("carried", norm[t], product[j, t] * norm[j] - total)
    sizes = ({j: 0, t: 1}, {j: 1, t: 3})
    setting = Setting((carried,), nonnegative=(product, lost), order=((j + 1, t),), instances=sizes)
    chain = Chain("the cap on the squared length", setting, product[j, t] * norm[j])
    chain = chain.unfold("add what the steps lost", norm[t] + total, "carried")
    return chain.drop("no loss is negative", norm[t], total).obligation()


def _output(defect_sign: int) -> Obligation:
    hypotheses = (
        Hypothesis("capped", share * start, end + left),
        Hypothesis("Schwarz", query * end, read**2 + defect_sign * defect),
    )
    setting = Setting((), hypotheses, nonnegative=(query, values, left, defect))
    chain = Chain("the cap on the squared contribution", setting, query * share * start * values)
    faded = query * left * values
    chain = chain.use("the length is capped", query * end * values + faded, capped=query * values)
    after = read**2 * values + defect * values + faded
    chain = chain.use("Cauchy and Schwarz", after, Schwarz=values)
    return chain.drop("both rests are at least 0", read**2 * values, defect * values, faded).obligation()


def parts() -> tuple[Part, ...]:
    """What each value contributes, one step, all steps, and the output."""
    return (
        Part(
            r"From the zero state $S_t=\sum_{j\le t}w_{j\to t}v_j^\top$ with $w_{j\to j}=\beta_jk_j$ and"
            r" $w_{j\to t}=(I-\beta_tk_tk_t^\top)\mathrm{Diag}(\alpha_t)w_{j\to t-1}$ (induction on $t$), so"
            r" the output $\sum_j(q\cdot w_{j\to t})v_j$ is linear in the values. Below, $w_t$ is"
            r" $w_{j\to t}$ for the one $j$.",
            (_state(1), _contributions()),
        ),
        Part(
            r"One step: if $0\le\alpha_{t,i}\le a_t$ for every channel, $\|k_t\|=1$ and $\beta_t\in[0,2]$,"
            r" then"
            r" $\|w_t\|^2\le a_t^2\|w_{t-1}\|^2$.",
            (contraction.one_step(),),
        ),
        Part(
            r"All steps since token $j$: $\|w_t\|^2=\prod_{j<i\le t}a_i^2\,\|w_j\|^2-\sum_{j<i\le t}\big("
            r"\prod_{i<r\le t}a_r^2\big)R_i$ with $R_i=a_i^2\|w_{i-1}\|^2-\|w_i\|^2\ge0$, hence"
            r" $\|w_t\|\le\prod_{j<i\le t}a_i\,\|w_j\|$.",
            (_carried(cap[t] ** 2), _capped()),
        ),
        Part(
            r"For every query $|q\cdot w_t|\le\|q\|\,\|w_t\|$, so the contribution $(q\cdot w_t)v_j$ is at"
            r" most"
            r" $\|q\|\prod_{j<i\le t}a_i\;\beta_j\|k_j\|\,\|v_j\|$.",
            (contraction.cauchy_schwarz(), _output(1)),
        ),
    )


CLAIM = Claim(
    id="kda.ceiling",
    title="What a token still contributes is capped by the decays since, and no query can raise it",
    statement=(
        r"In KDA with unit keys, $\beta_i\in[0,2]$ and $\alpha_i\in[0,1]^K$ the output at time $t$ is linear"
        r" in"
        r" the values, and the part that $v_j$ contributes has norm at most"
        r" $\|q\|\prod_{j<i\le t}\max_c\alpha_{i,c}\;\beta_j\|k_j\|\,\|v_j\|$, whatever the query's"
        r" direction."
    ),
    source="article B, section 1",
    status=Status.AS_PRINTED,
    scope="every t ≥ j, every K, any queries and values, any caps a_i ≥ max α_i",
    variables=(
        Variable("j, t", r"token and time, integers with $j\le t$"),
        Variable("w_t", r"what is left of $\beta_jk_j$ in the state at time $t$, $\mathbb{R}^K$"),
        Variable("a_i", r"a cap on the decays of step $i$, e.g. their maximum, $[0,1]$"),
        Variable("q", r"query, $\mathbb{R}^K$"),
        Variable("v_j", r"value, any width; $V=\|v_j\|^2$"),
    ),
    assumptions=(
        Assumption("zero initial state"),
        Assumption("unit keys and 0 ≤ β_i ≤ 2 for the tokens after j"),
        Assumption("0 ≤ α_i,c ≤ a_i in every channel c"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("value not written", "a write that erases only", lambda: (_state(0),)),
        Mutant("wrong cap", "the steps' losses with a_t in place of its square", lambda: (_carried(cap[t]),)),
        Mutant("β up to 3", "one step with 3 − β as the room", lambda: (contraction.one_step(cap[t], 3),)),
        Mutant("defect sign", "Schwarz the other way round", lambda: (_output(-1),)),
    ),
    remark=(
        "Softmax can lift any token back to weight 1 with a large enough query; here the query enters by its"
        " length only, and the decays have already been multiplied in."
    ),
)
