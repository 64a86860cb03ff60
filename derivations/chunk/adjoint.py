"""The backward pass of a chunk is one transposed triangular solve, then matrix products.

Along every direction the derivative of a loss that is linear in a chunk's outputs and in the state after it
is collected by the directions of its inputs. What is written solves (I + L)u = Diag(β)(V − XS); its
adjoint solves the transposed system. The cumulative gates' gradients add up to those of the gates from the
last token on. The chunkwise gradients are run in exact rationals and compared with dual numbers.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from derivations.chunk import _pairings as pairings
from derivations.chunk import _tangent as tangent
from derivations.chunk._backward import in_numbers
from derivations.chunk._pairings import (
    A_bar,
    B_bar,
    E_bar,
    collected,
    names_of,
    v_bar,
    width,
    x_bar,
    y_bar,
    z_bar,
)
from derivations.chunk._tangent import C, G, G_dot, S, d, e, i, j, k, k_dot, q, q_dot, t, tokens, u
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

n = symbols("n")
q_bar, k_bar, g_bar, G_bar, g_dot, X = (
    IndexedBase(name) for name in ("qbar", "kbar", "gbar", "Gbar", "gdot", "X")
)
forward, backward = exp(G[t, e]), exp(-G[t, e])
x_is = Definition("x", tangent.x[t, e], forward * k[t, e], (t, e))
y_is = Definition("y", tangent.y[t, e], backward * k[t, e], (t, e))
z_is = Definition("z", tangent.z[t, e], forward * q[t, e], (t, e))
x_moves, y_moves, z_moves = (
    Definition(
        f"{name} moves", moved[t, e], factor * (direction[t, e] + sign * point[t, e] * G_dot[t, e]), (t, e)
    )
    for name, moved, factor, direction, sign, point in (
        ("x", tangent.x_dot, forward, k_dot, 1, k),
        ("y", tangent.y_dot, backward, k_dot, -1, k),
        ("z", tangent.z_dot, forward, q_dot, 1, q),
    )
)
in_key = Definition("key", k_bar[t, e], forward * x_bar[t, e] + backward * y_bar[t, e], (t, e))
in_query = Definition("query", q_bar[t, e], forward * z_bar[t, e], (t, e))


def _tangents() -> tuple[Obligation, ...]:
    moved_key = tangent.decayed(1, x_moves.rhs)
    return (
        *tangent.system(),
        *tangent.output(),
        *tangent.end(),
        *moved_key,
        *tangent.decayed(-1, y_moves.rhs),
    )


def _cumulative(sign: int = -1) -> tuple[Obligation, Obligation]:
    """From x, y and z to keys, queries and cumulative gates, one entry at a time."""
    in_gate = Definition(
        "cumulative gate",
        G_bar[t, e],
        x_bar[t, e] * tangent.x[t, e] + sign * y_bar[t, e] * tangent.y[t, e] + z_bar[t, e] * tangent.z[t, e],
    )
    definitions = (x_moves, y_moves, z_moves, in_key, in_query, in_gate, x_is, y_is, z_is)
    setting = Setting(definitions, instances=tangent.ENTRY)
    moved = zip((x_bar, y_bar, z_bar), (tangent.x_dot, tangent.y_dot, tangent.z_dot), strict=True)
    start = sum((bar[t, e] * dot[t, e] for bar, dot in moved), Integer(0))
    chain = Chain("one entry of the pairings", setting, start)
    after = k_bar[t, e] * k_dot[t, e] + q_bar[t, e] * q_dot[t, e] + G_bar[t, e] * G_dot[t, e]
    first = chain.unfold("by key, query and gate", after, *names_of(*definitions)).obligation()
    named = (in_gate, in_query, x_is, y_is, z_is)
    chain = Chain("the cumulative gate", Setting(named, instances=tangent.ENTRY), G_bar[t, e])
    halves = k[t, e] * (forward * x_bar[t, e] - backward * y_bar[t, e])
    after = q[t, e] * q_bar[t, e] + halves
    return first, chain.unfold("the two halves of the key", after, *names_of(*named)).obligation()


def _differences(later: Expr = G[i, e] - G[t, e]) -> Obligation:
    """The key's gradient with gates in differences only."""
    whole = Definition("whole decay", tangent.gamma[e], exp(G[C, e]), (e,))
    definitions = (in_key, pairings.in_x, pairings.in_y, x_is, y_is, z_is, whole)
    chain = Chain(
        "the key's gradient", Setting(definitions, nonempty=(C,), instances=tangent.ENTRY), k_bar[t, e]
    )
    earlier = tokens(A_bar[t, i] * exp(G[t, e] - G[i, e]) * k[i, e])
    after = earlier - forward * width(S[e, d] * v_bar[t, d])
    after += tokens((A_bar[i, t] * k[i, e] + B_bar[i, t] * q[i, e]) * exp(later))
    after += exp(G[C, e] - G[t, e]) * width(E_bar[e, d] * u[t, d])
    return chain.unfold("gates meet in differences", after, *names_of(*definitions)).obligation()


def _gates(last: int = 1) -> Obligation:
    """Σ_{t≤n} (ḡ_t − ḡ_{t+1})Ġ_t = Σ_{t≤n} ḡ_t ġ_t − ḡ_{n+1}Ġ_n, one channel."""
    rhs = Sum(g_bar[t] * g_dot[t], (t, 1, n)) - last * g_bar[n + 1] * G_dot[n]
    goal = Induction("from cumulative gates to gates", n, Integer(0), X[n], rhs)
    nothing = (Definition("no token", X[0], Integer(0)), Definition("no gate yet", G_dot[0], Integer(0)))
    base = Chain("no token", Setting(nothing), X[0])
    base = base.unfold("nothing", rhs.subs(n, 0), "no token", "no gate yet")
    more = Definition("one token more", X[n], X[n - 1] + (g_bar[n] - g_bar[n + 1]) * G_dot[n])
    grown = Definition("cumulative", G_dot[n], G_dot[n - 1] + g_dot[n])
    setting = Setting((more, grown, goal.hypothesis), order=((1, n),), instances=({n: 1}, {n: 3}))
    step = Chain("one token more", setting, X[n]).unfold("its pairing", more.rhs, "one token more")
    before = rhs.subs(n, n - 1) + (g_bar[n] - g_bar[n + 1]) * G_dot[n]
    step = step.unfold("the tokens before", before, "induction hypothesis")
    return goal.obligation(base, step.split("its gate joins the sum", rhs, n, n - 1, "cumulative"))


def parts() -> tuple[Part, ...]:
    """Tangents, one chunk, keys and gates, differences, gates from cumulative ones, and exact numbers."""
    return (
        Part(
            r"With $m=V-XS-(M\circ XY^\top)u$, $u=\mathrm{Diag}(\beta)m$, $O=ZS+(N\circ ZY^\top)u$ and"
            r" $S'=\mathrm{Diag}(e^{G_C})(S+Y^\top u)$, inputs that move along a line move these as stated:"
            r" $\dot u+\mathrm{Diag}(\beta)(M\circ XY^\top)\dot u=\mathrm{Diag}(\dot\beta)m+\mathrm{Diag}"
            r"(\beta)(\dot V-\dot XS-X\dot S-(M\circ\dot A)u)$ with $A=XY^\top$, outputs and end by the"
            r" product rule, and $\dot x=e^G(\dot k+k\dot G)$, $\dot y=e^{-G}(\dot k-k\dot G)$ ($z$ as $x$).",
            _tangents(),
        ),
        Part(
            r"With the gradients of the statement $\langle\bar O,\dot O\rangle+\langle\bar S',\dot"
            r" S'\rangle=\langle\bar X,\dot X\rangle+\langle\bar Y,\dot Y\rangle+\langle\bar Z,\dot"
            r" Z\rangle+\langle\bar V,\dot V\rangle+\bar\beta\cdot\dot\beta+\langle\bar S,\dot"
            r" S\rangle+\sum_e\dot G_{Ce}\,\mathrm{rowsum}(\bar S'\circ S')_e$ in every direction: the"
            r" transposed system $w+(M\circ XY^\top)^\top\mathrm{Diag}(\beta)w=\bar u$ moves the solve to the"
            r" other side.",
            (collected(),),
        ),
        Part(
            r"Keys, queries and cumulative gates: $\bar K=e^G\circ\bar X+e^{-G}\circ\bar Y$, $\bar"
            r" Q=e^G\circ\bar Z$, $\bar G=X\circ\bar X-Y\circ\bar Y+Z\circ\bar Z=Q\circ\bar"
            r" Q+K\circ(e^G\circ\bar X-e^{-G}\circ\bar Y)$, entry by entry.",
            _cumulative(),
        ),
        Part(
            r"Gates occur in differences only: $\bar k_t=\sum_i\bar A_{ti}e^{G_t-G_i}\circ k_i-e^{G_t}\circ"
            r" S\bar v_t+\sum_i e^{G_i-G_t}\circ(\bar A_{it}k_i+\bar B_{it}q_i)+e^{G_C-G_t}\circ\bar"
            r" S'u_t$; as $\bar A_{ti}=0$ for $i\ge t$ and $\bar B_{it}=0$ for $i<t$, no exponent that counts"
            r" is above 0 for gates of at most 0.",
            (_differences(),),
        ),
        Part(
            r"With $\bar g_t=\bar g_{t+1}+\bar G_t$ from $\bar g_{C+1}=0$: $\sum_t\bar G_t\dot"
            r" G_t=\sum_t\bar g_t\dot g_t$ for $G_t=g_1+\dots+g_t$ (induction over the tokens).",
            (_gates(),),
        ),
        Part(
            r"On the 5 literal tokens of kda.adjoint, in chunks of 1, 2, 3 and 5 (2 and 3 do not divide 5),"
            r" the chunkwise gradients, chunk after chunk from the last, are exactly those of dual numbers.",
            tuple(in_numbers(size) for size in (1, 2, 3, 5)),
        ),
    )


def _damaged(definition: Definition, rhs: Expr) -> Definition:
    return Definition(definition.name, definition.lhs, rhs, definition.free)


_ROW = tokens(tangent.M[j, i] * tangent.score(tangent.x, j, i) * v_bar[i, d])
NOT_TRANSPOSED = _damaged(pairings.solve, pairings.w[j, d] + _ROW)
SCORES_ADDED = _damaged(pairings.in_scores, -pairings.in_scores.rhs)
NO_END = _damaged(pairings.in_y, tokens(A_bar[i, t] * tangent.x[i, e] + B_bar[i, t] * tangent.z[i, e]))

CLAIM = Claim(
    id="chunk.adjoint",
    title="The backward pass of a chunk is one transposed triangular solve, then matrix products",
    statement=(
        r"A chunk of KDA with start $S$, $x_t=e^{G_t}\circ k_t$, $y_t=e^{-G_t}\circ k_t$, $z_t=e^{G_t}\circ"
        r" q_t$ is $m=V-XS-(M\circ XY^\top)u$, $u=\mathrm{Diag}(\beta)m$, $O=ZS+(N\circ ZY^\top)u$,"
        r" $S'=\mathrm{Diag}(e^{G_C})(S+Y^\top u)$. For cotangents $\bar O$ and $\bar S'$ it has"
        r" the gradients: $\bar u=(N\circ ZY^\top)^\top\bar O+Y\mathrm{Diag}(e^{G_C})\bar S'$,"
        r" $w=(I+\mathrm{Diag}(\beta)(M\circ XY^\top))^{-\top}\bar u$, $\bar V=\mathrm{Diag}(\beta)w$,"
        r" $\bar\beta=\mathrm{rowsum}(w\circ m)$, $\bar A=-M\circ\bar Vu^\top$, $\bar B=N\circ\bar"
        r" Ou^\top$, $\bar X=\bar AY-\bar VS^\top$, $\bar Y=\bar A^\top X+\bar B^\top Z+u\bar"
        r" S'^\top\mathrm{Diag}(e^{G_C})$, $\bar Z=\bar BY+\bar OS^\top$, $\bar S=\mathrm{Diag}(e^{G_C})\bar"
        r" S'+Z^\top\bar O-X^\top\bar V$; from them those of keys, queries and gates, with"
        r" $\mathrm{rowsum}(\bar S'\circ S')$ added to $\bar G_C$."
    ),
    source="new",
    status=Status.NEW,
    scope="every chunk size, all widths, all real inputs; so every cut of a sequence into chunks",
    variables=(
        Variable("C, K, V", "tokens of the chunk, widths of keys and values"),
        Variable("G_t", r"sum of the chunk's gates up to token $t$, $\mathbb{R}^K$"),
        Variable("M, N", r"masks: 1 for $j<t$, and for $j\le t$, else 0; nothing else is used of them"),
        Variable(r"\bar O, \bar S'", "gradients of the loss in the chunk's outputs and end state"),
    ),
    assumptions=(
        Assumption("u solves its system, which is unit triangular, so its solution is unique and smooth"),
        Assumption(
            r"chain rule: a derivative along a line depends on first orders only, and $\bar S$ of a chunk is"
            r" the $\bar S'$ of the chunk before"
        ),
        Assumption("chunkwise outputs and states are those of the recurrence (chunk.equals-recurrent)"),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant("not transposed", "the forward system solved again", lambda: (collected(NOT_TRANSPOSED),)),
        Mutant("sign of the scores", "scores of keys with +", lambda: (collected(scored=SCORES_ADDED),)),
        Mutant("end forgotten", "written keys that miss the end state", lambda: (collected(ended=NO_END),)),
        Mutant("gate sign", "written keys adding to the gate", lambda: _cumulative(1)),
        Mutant(
            "growing", "e^{G_t − G_i} where e^{G_i − G_t} stands", lambda: (_differences(G[t, e] - G[i, e]),)
        ),
        Mutant("tail kept", "the sum of gates with its last term twice", lambda: (_gates(2),)),
        Mutant("numbers", "the system not transposed, in numbers", lambda: (in_numbers(3, False),)),
    ),
    remark=(
        "The quotient form of x and y is for the proof; a program forms the differences of the fourth part"
        " before it takes exponentials."
    ),
)
