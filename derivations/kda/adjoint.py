"""The backward pass of KDA is a recurrence of its own, for every number of tokens.

Along every direction the derivative of a loss that is linear in outputs and final state is followed through
one step; collecting what stands with each input's direction gives its gradient, and what stands with the
state's direction gives the adjoint one token earlier. By induction over the tokens the pairings add up. The
adjoint recurrence is also run in exact rationals, and dual numbers differentiate the definition against it.
"""

from sympy import Expr, IndexedBase, Integer, Sum

from derivations.kda import _contraction as contraction
from derivations.kda import _tangent as tangent
from derivations.kda._backward import in_numbers
from derivations.kda._tangent import (
    K,
    P,
    P_dot,
    S,
    S_dot,
    V,
    alpha,
    beta,
    beta_dot,
    c,
    d,
    e,
    f,
    g_dot,
    k,
    k_dot,
    m,
    missed,
    moved_decayed,
    moved_output,
    moved_state,
    moved_written,
    o_dot,
    q,
    q_dot,
    t,
    u,
    u_dot,
    v_dot,
    written,
)
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

A, D, G, o_bar = (IndexedBase(name) for name in ("A", "Sbar", "Pbar", "obar"))
q_bar, k_bar, v_bar, g_bar, beta_bar, u_bar = (
    IndexedBase(name) for name in ("qbar", "kbar", "vbar", "gbar", "betabar", "ubar")
)
k_write, k_read = IndexedBase("kappa"), IndexedBase("lambda")
X, Y, J, gdn_dot = (IndexedBase(name) for name in ("X", "Y", "J", "adot"))
SIZES = ({t: 2, K: 2, V: 2}, {t: 3, K: 2, V: 1})
ENTRIES = tuple({**sizes, c: 1, d: 1} for sizes in SIZES)


def channels(summand: Expr) -> Sum:
    """Σ over the K key channels c."""
    return Sum(summand, (c, 1, K))


def width(summand: Expr) -> Sum:
    """Σ over the V value coordinates d."""
    return Sum(summand, (d, 1, V))


def over(summand: Expr) -> Sum:
    """Σ over all entries of a K×V matrix."""
    return Sum(summand, (d, 1, V), (c, 1, K))


whole = Definition("adjoint with the output", A[t, c, d], D[t, c, d] + q[t, c] * o_bar[t, d], (c, d))
query = Definition("query", q_bar[t, c], Sum(S[t, c, f] * o_bar[t, f], (f, 1, V)), (c,))
write = Definition("what is written", u_bar[t, d], Sum(A[t, e, d] * k[t, e], (e, 1, K)), (d,))
value = Definition("value", v_bar[t, d], beta[t] * u_bar[t, d], (d,))
strength = Definition("strength", beta_bar[t], Sum(u_bar[t, f] * m[t, f], (f, 1, V)))
key = Definition(
    "key", k_bar[t, c], Sum(A[t, c, f] * u[t, f], (f, 1, V)) - Sum(P[t, c, f] * v_bar[t, f], (f, 1, V)), (c,)
)
decayed = Definition("decayed state", G[t, c, d], A[t, c, d] - k[t, c] * v_bar[t, d], (c, d))
gate = Definition("gate", g_bar[t, c], Sum(G[t, c, f] * P[t, c, f], (f, 1, V)), (c,))
earlier = Definition("adjoint one token earlier", D[t - 1, c, d], alpha[t, c] * G[t, c, d], (c, d))

query_pair = channels(q_bar[t, c] * q_dot[t, c])
key_pair = channels(k_bar[t, c] * k_dot[t, c])
value_pair = width(v_bar[t, d] * v_dot[t, d])
gate_pair = channels(g_bar[t, c] * g_dot[t, c])
strength_pair = beta_bar[t] * beta_dot[t]
inputs = query_pair + key_pair + value_pair + gate_pair + strength_pair


def _names(*definitions: Definition) -> tuple[str, ...]:
    return tuple(item.name for item in definitions)


def _collected(
    decay: Definition = earlier, gated: Definition = gate, keyed: Definition = key, sign: int = 1
) -> Obligation:
    """One step: the pairings after it are those before it plus those of the token's inputs."""
    definitions = (
        *(moved_output, moved_state, moved_written, moved_decayed, missed, written),
        *(whole, query, write, value, strength, keyed, decayed, gated, decay),
    )
    setting = Setting(definitions, nonempty=(K, V), instances=SIZES)
    chain = Chain(
        "derivative along a direction, after one step",
        setting,
        over(D[t, c, d] * S_dot[t, c, d]) + width(o_bar[t, d] * o_dot[t, d]),
    )
    after = query_pair + over(A[t, c, d] * S_dot[t, c, d])
    chain = chain.unfold("the query, and the state it reads", after, *_names(moved_output, whole, query))
    after = (
        query_pair
        + over(A[t, c, d] * (P_dot[t, c, d] + k_dot[t, c] * u[t, d]))
        + width(u_bar[t, d] * u_dot[t, d])
    )
    chain = chain.unfold("decayed state, key and what is written", after, moved_state.name, write.name)
    after = query_pair + key_pair + value_pair + strength_pair + over(G[t, c, d] * P_dot[t, c, d])
    names = _names(moved_written, keyed, decayed, strength, value)
    chain = chain.unfold("key, value and strength", after, *names)
    after = over(D[t - 1, c, d] * S_dot[t - 1, c, d]) + sign * inputs
    return chain.unfold(
        "the gate, and the state before", after, *_names(moved_decayed, gated, decay)
    ).obligation()


def _added_up(output: int = 1) -> Obligation:
    """X_t + Σ_{i≤t} Y_i = X_0 + Σ_{i≤t} J_i, by induction over the tokens."""
    read, given = (Sum(term[e], (e, 1, t)) for term in (Y, J))
    rhs = X[0] + given - read
    goal = Induction("the pairings add up", t, Integer(0), X[t], rhs)
    base = Chain("no token", Setting(instances=({},)), X[0]).rearrange("empty sums", rhs.subs(t, 0))
    one = Definition("one step", X[t], X[t - 1] + J[t] - output * Y[t])
    setting = Setting((one, goal.hypothesis), order=((1, t),), instances=({t: 1}, {t: 3}))
    step = Chain("one token more", setting, X[t])
    step = step.unfold("what one step does to the pairing", one.rhs, "one step")
    before = rhs.subs(t, t - 1) + J[t] - output * Y[t]
    step = step.unfold("the tokens before", before, "induction hypothesis")
    return goal.obligation(base, step.split("the newest joins both sums", rhs, t, t - 1))


def _gate_without_states(sign: int = 1) -> tuple[Obligation, Obligation]:
    """ḡ_t is the row sum of S̄_{t−1} ∘ S_{t−1}, and that of S̄_t ∘ S_t plus terms of the token's own."""
    rows = Definition("decayed rows", P[t, c, d], alpha[t, c] * S[t - 1, c, d], (c, d))
    setting = Setting((gate, earlier, rows), nonempty=(V,), instances=ENTRIES)
    chain = Chain("adjoint times state, before the step", setting, width(D[t - 1, c, d] * S[t - 1, c, d]))
    names = _names(gate, earlier, rows)
    first = chain.unfold("the decay goes to the state", g_bar[t, c], *names).obligation()
    after_write = Definition("state", S[t, c, d], P[t, c, d] + k[t, c] * u[t, d], (c, d))
    wrote = Definition("key as written", k_write[t, c], Sum(A[t, c, f] * u[t, f], (f, 1, V)), (c,))
    reads = Definition("key as read", k_read[t, c], -Sum(P[t, c, f] * v_bar[t, f], (f, 1, V)), (c,))
    definitions = (gate, decayed, query, wrote, reads, whole, after_write)
    setting = Setting(definitions, nonempty=(V,), instances=ENTRIES)
    chain = Chain("the gate's gradient", setting, g_bar[t, c])
    own = q[t, c] * q_bar[t, c] - k[t, c] * k_write[t, c] + sign * k[t, c] * k_read[t, c]
    after = width(D[t, c, d] * S[t, c, d]) + own
    second = chain.unfold("through the step", after, *_names(*definitions))
    return first, second.obligation()


def _transposed() -> Obligation:
    """The step back as a matrix: Diag(α)(I − βkkᵀ)."""
    setting = Setting((earlier, decayed, value, write), nonempty=(K,), instances=ENTRIES)
    chain = Chain("the adjoint one token earlier", setting, D[t - 1, c, d])
    after = alpha[t, c] * (A[t, c, d] - beta[t] * k[t, c] * Sum(k[t, e] * A[t, e, d], (e, 1, K)))
    return chain.unfold("the transposed step", after, *_names(earlier, decayed, value, write)).obligation()


def _one_gate(after: Expr) -> Obligation:
    """GDN: the same gate in all channels."""
    shared = Definition("one gate", g_dot[t, c], gdn_dot[t], (c,))
    setting = Setting((shared,), nonempty=(K,), instances=SIZES)
    chain = Chain("the pairing of the gate", setting, gate_pair)
    return chain.unfold("the direction leaves the sum", after * gdn_dot[t], "one gate").obligation()


def parts() -> tuple[Part, ...]:
    """Tangents, one step, all steps, the gate without states, GDN, and exact dual numbers."""
    return (
        Part(
            r"Moving every input along a line, the derivatives at its start are $\dot P=\mathrm{Diag}(\alpha)"
            r"\dot S_{t-1}+\mathrm{Diag}(\dot g)P$, $\dot u=\dot\beta m+\beta(\dot v-P^\top\dot k-\dot"
            r" P^\top k)$, $\dot S_t=\dot P+\dot ku^\top+k\dot u^\top$ and $\dot o=S_t^\top\dot q+\dot"
            r" S_t^\top q$, where $P=\mathrm{Diag}(e^g)S_{t-1}$, $m=v-P^\top k$, $u=\beta m$.",
            (*tangent.decayed(), *tangent.wrote(), *tangent.state(), *tangent.output()),
        ),
        Part(
            r"With $A=\bar S_t+q\bar o^\top$, $\bar u=A^\top k$, $\bar v=\beta\bar u$, $\bar P=A-k\bar"
            r" v^\top$ and the gradients of the statement: $\langle\bar S_t,\dot S_t\rangle+\bar o\cdot\dot"
            r" o=\langle\bar S_{t-1},\dot S_{t-1}\rangle+\bar q\cdot\dot q+\bar k\cdot\dot k+\bar v\cdot\dot"
            r" v+\bar g\cdot\dot g+\bar\beta\dot\beta$ in every direction.",
            (_collected(),),
        ),
        Part(
            r"Adding up over the tokens, with $X_t=\langle\bar S_t,\dot S_t\rangle$, $Y_t=\bar o_t\cdot\dot"
            r" o_t$ and $J_t$ the pairing of the inputs of token $t$: $\langle\bar S_T,\dot"
            r" S_T\rangle+\sum_{t\le T}Y_t=\langle\bar S_0,\dot S_0\rangle+\sum_{t\le T}J_t$ for every $T$."
            r" The left side is the derivative of the loss; the right side has each gradient beside the"
            r" direction of its input.",
            (_added_up(),),
        ),
        Part(
            r"The gate's gradient needs no state inside: $\bar g_t$ is the row sum of $\bar S_{t-1}\circ"
            r" S_{t-1}$, and $\bar g_t=\bar g_{t+1}+q_t\circ\bar q_t-k_t\circ\bar k^w_t+k_t\circ\bar k^r_t$"
            r" with $\bar k^w=Au$, $\bar k^r=-P\bar v$ the two halves of $\bar k$; $\bar g_{T+1}$ stands for"
            r" the row sum of $\bar S_T\circ S_T$.",
            _gate_without_states(),
        ),
        Part(
            r"With one gate for all channels (GDN) its gradient is $\sum_c\bar g_c$; without a gate ($g=0$,"
            r" the delta rule) the others stay as they are.",
            (_one_gate(channels(g_bar[t, c])),),
        ),
        Part(
            r"Going back is no expansion either: $\bar S_{t-1}=\mathrm{Diag}(\alpha)(I-\beta kk^\top)A_t$,"
            r" and for a unit key, $\beta\in[0,2]$ and $\alpha\in[0,1]^K$ no column becomes longer.",
            (_transposed(), contraction.one_step_back()),
        ),
        Part(
            r"On 5 literal tokens from a nonzero state, with decays of 1 and strengths of $-1$, 0 and 2"
            r" among them, dual numbers differentiate the definition in each single input: every gradient of"
            r" the recurrence is exactly that derivative.",
            (in_numbers(),),
        ),
    )


def _damaged(definition: Definition, rhs: Expr) -> Definition:
    return Definition(definition.name, definition.lhs, rhs, definition.free)


KEY_READ_ONCE = _damaged(key, Sum(A[t, c, f] * u[t, f], (f, 1, V)))
GATE_OF_WHOLE = _damaged(gate, Sum(A[t, c, f] * P[t, c, f], (f, 1, V)))
NO_DECAY_BACK = _damaged(earlier, G[t, c, d])
STILL = beta_dot[t] * m[t, d] + beta[t] * (v_dot[t, d] - Sum(k[t, e] * P_dot[t, e, d], (e, 1, K)))

CLAIM = Claim(
    id="kda.adjoint",
    title="The backward pass of KDA is a recurrence of its own, for every number of tokens",
    statement=(
        r"For the loss $L=\sum_{t\le T}\bar o_t\cdot o_t+\langle\bar S_T,S_T\rangle$ of KDA outputs"
        r" $o_t=S_t^\top q_t$, with $P_t=\mathrm{Diag}(e^{g_t})S_{t-1}$, $m_t=v_t-P_t^\top k_t$,"
        r" $u_t=\beta_tm_t$, $S_t=P_t+k_tu_t^\top$, let $A_t=\bar S_t+q_t\bar o_t^\top$. From $t=T$ down to"
        r" 1 the gradients are $\bar q_t=S_t\bar o_t$, $\bar v_t=\beta_tA_t^\top k_t$,"
        r" $\bar\beta_t=m_t^\top A_t^\top k_t$, $\bar k_t=A_tu_t-P_t\bar v_t$, $\bar g_t=\mathrm{rowsum}"
        r"(\bar P_t\circ P_t)$ with $\bar P_t=A_t-k_t\bar v_t^\top$, and $\bar S_{t-1}=\mathrm{Diag}"
        r"(e^{g_t})\bar P_t$, down to the gradient $\bar S_0$ of the initial state."
    ),
    source="new",
    status=Status.NEW,
    scope="every T, K, V, all real q, k, v, g, β, initial states and cotangents; no norm of k is assumed",
    variables=(
        Variable("q_t, k_t, g_t", r"\mathbb{R}^K"),
        Variable("v_t", r"\mathbb{R}^V"),
        Variable(r"\beta_t", r"\mathbb{R}"),
        Variable(r"S_0, \bar S_T", r"\mathbb{R}^{K\times V}"),
        Variable(r"\bar o_t", r"gradient of the loss in the output of token $t$, $\mathbb{R}^V$"),
        Variable(r"\dot x", "direction in which the input x moves; a bar marks the gradient"),
    ),
    assumptions=(
        Assumption("a scale of the query is part of q, so its gradient takes the same factor"),
        Assumption(
            "chain rule: a derivative along a line depends on what a step is given through its first order"
            " only; a loss that is differentiable in outputs and final state has the gradients of this one,"
            " with its own derivatives as the cotangents"
        ),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant(
            "key read forgotten",
            "the key's gradient from its write alone",
            lambda: (_collected(keyed=KEY_READ_ONCE),),
        ),
        Mutant(
            "erase forgotten in the gate",
            "the gate's gradient from A",
            lambda: (_collected(gated=GATE_OF_WHOLE),),
        ),
        Mutant(
            "no decay backwards",
            "the adjoint carried without Diag(e^g)",
            lambda: (_collected(NO_DECAY_BACK),),
        ),
        Mutant("sign", "all gradients with the opposite sign", lambda: (_collected(sign=-1),)),
        Mutant("tangent", "what is written moved as if the key stood still", lambda: tangent.wrote(STILL)),
        Mutant("outputs twice", "the sum with each output taken twice", lambda: (_added_up(2),)),
        Mutant("key sign", "the reading half of the key with −", lambda: _gate_without_states(-1)),
        Mutant("β up to 3", "a step back with 3 − β as the room", lambda: (contraction.one_step_back(3),)),
        Mutant("one channel", "GDN's gate from its first channel", lambda: (_one_gate(g_bar[t, 1]),)),
        Mutant("numbers", "β's gradients one token late in numbers", lambda: (in_numbers("strengths"),)),
    ),
    remark=(
        "Gates above 0 or keys that are not normalised lose the bound on gradients just as they lose that on"
        " the state."
    ),
)
