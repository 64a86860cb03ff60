"""More tokens than features: a fixed state merges histories that softmax tells apart."""

from sympy import Expr, IndexedBase, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

T, m, t, l_, c = symbols("T m t l c", integer=True, positive=True)
phi, v, z, w, a, reduced, y, pivot_row = (
    IndexedBase(name) for name in ("phi", "v", "z", "w", "a", "phi'", "z'", "p")
)
last = symbols("z_p")


def _state(null_weight: Expr | int) -> Obligation:
    null = Sum(phi[t, l_] * z[t], (t, 1, T))
    setting = Setting(
        hypotheses=(Hypothesis("null vector", null, 0),),
        instances=({T: 3, l_: 1, c: 1}, {T: 4, l_: 2, c: 2}),
    )
    start = Sum(phi[t, l_] * (v[t, c] + z[t] * w[c]), (t, 1, T))
    chain = Chain("the state of the changed history, entry (l, c)", setting, start)
    old = Sum(phi[t, l_] * v[t, c], (t, 1, T))
    chain = chain.rearrange("multiply out", old + w[c] * null)
    return chain.use("Φᵀz = 0", old + null_weight, **{"null vector": w[c]}).obligation()


def _softmax(moved: Expr) -> Obligation:
    setting = Setting(instances=({T: 3, c: 1}, {T: 4, c: 2}))
    start = Sum(a[t] * (v[t, c] + z[t] * w[c]), (t, 1, T)) - Sum(a[t] * v[t, c], (t, 1, T))
    chain = Chain("the softmax output of the changed history minus the first", setting, start)
    return chain.rearrange("the weights depend on keys and query only", moved).obligation()


def _elimination(pivot_weight: Expr) -> tuple[Obligation, ...]:
    """One step of the induction on m: from z' for T − 1 tokens and m − 1 features to z for T and m.

    The pivot token comes last, with features p[l]; phi[t, l] are the other T − 1 tokens' features.
    """
    others = T - 1
    cleared = phi[t, l_] - phi[t, m] / pivot_row[m] * pivot_row[l_]
    setting = Setting(
        definitions=(
            Definition("eliminated", reduced[t, l_], cleared, (t, l_)),
            Definition("pivot weight", last, pivot_weight),
        ),
        hypotheses=(Hypothesis("smaller", Sum(y[t] * reduced[t, l_], (t, 1, others)), 0),),
        nonzero=(pivot_row[m],),
        instances=({T: 3, m: 2, l_: 1}, {T: 4, m: 3, l_: 2}),
    )
    column = Chain("column l < m", setting, Sum(y[t] * phi[t, l_], (t, 1, others)) + last * pivot_row[l_])
    collected = Sum(y[t] * reduced[t, l_], (t, 1, others))
    column = column.unfold("the eliminated features", collected, "pivot weight", "eliminated")
    column = column.use("z' is a null vector of the smaller problem", 0, smaller=1)
    final = Chain("column m", setting, Sum(y[t] * phi[t, m], (t, 1, others)) + last * pivot_row[m])
    final = final.unfold("the pivot weight was chosen for this", 0, "pivot weight")
    return column.obligation(), final.obligation()


def _witness(other: list[str]) -> Obligation:
    shared = {"features": [["1", "0"], ["1", "1"], ["1", "2"]], "keys": [["0"], ["1"], ["2"]]}
    data = {
        "first": {**shared, "values": [["0"], ["0"], ["0"]]},
        "second": {**shared, "values": [[value] for value in other]},
        "z": ["1", "-2", "1"],
        "w": ["1"],
        "query": ["1"],
        "gap": "1/4",
    }
    label = "three tokens, features φ(k) = (1, k), z = (1, −2, 1): one state, softmax outputs 1/4 apart"
    return Obligation("state-collision", label, "E", data)


def parts() -> tuple[Part, ...]:
    """Equal states, the softmax gap, existence of z, and a witness."""
    weights = Sum(y[t] * phi[t, m], (t, 1, T - 1))
    return (
        Part(
            r"If $\Phi^\top z=0$, the values $V$ and $V+zw^\top$ give one state $\sum_t\phi_tv_t^\top$ for"
            r" every $w$, $V$, $T$, $m$ and value width; the normaliser $\sum_t\phi_t$ does not contain"
            r" the values.",
            (_state(0),),
        ),
        Part(
            r"The softmax outputs differ by $(a(q)\cdot z)\,w$, where $a(q)$ are the weights.",
            (_softmax(Sum(a[t] * z[t], (t, 1, T)) * w[c]),),
        ),
        Part(
            r"For $T>m$ such a $z\ne0$ exists, by elimination: with a pivot $p_m\ne0$ in the last column,"
            r" a null vector $z'$ of the $(T-1)\times(m-1)$ features $\phi_{tl}-\phi_{tm}p_l/p_m$ extends"
            r" by the pivot's weight $-\sum_tz'_t\phi_{tm}/p_m$; without a pivot the column is zero and"
            r" drops out.",
            _elimination(-weights / pivot_row[m]),
        ),
        Part(
            r"Softmax does tell such histories apart: $T=3$, $m=2$, $\phi(k)=(1,k)$, keys $0,1,2$, query 1.",
            (_witness(["1", "-2", "1"]),),
        ),
    )


CLAIM = Claim(
    id="collision.nullspace",
    title="More tokens than features: a fixed state merges histories that softmax tells apart",
    statement=r"Let $\Phi\in\mathbb R^{T\times m}$ have more rows than columns. Some $z\ne0$ has"
    r" $\Phi^\top z=0$; for every $w$ the histories with values $V$ and $V+zw^\top$ have equal states"
    r" $\Phi^\top V$ and equal normalisers $\Phi^\top1$, while their softmax outputs differ by $(a(q)\cdot"
    r" z)w$.",
    source="article A, section 3; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every T > m, every value width, any feature map; the witness at T = 3, m = 2",
    variables=(
        Variable(r"\Phi", r"\mathbb{R}^{T\times m}, T>m"),
        Variable("V", r"\mathbb{R}^{T\times d}"),
        Variable("w", r"\mathbb{R}^d"),
        Variable("a(q)", r"\text{softmax weights at } q"),
    ),
    assumptions=(
        Assumption("both histories have the same keys, so the same features and softmax weights"),
        Assumption(
            "existence of z: induction on m; m = 0 (no condition, z = 1) and a zero column are immediate, the"
            " step with a pivot is checked, with the tokens numbered so that the pivot comes last"
        ),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("off by one", "a state that keeps one w", lambda: (_state(w[c]),)),
        Mutant(
            "sign flipped",
            "softmax moving by −(a·z)w",
            lambda: (_softmax(-Sum(a[t] * z[t], (t, 1, T)) * w[c]),),
        ),
        Mutant(
            "sign of the pivot",
            "the pivot weight with the other sign",
            lambda: _elimination(Sum(y[t] * phi[t, m], (t, 1, T - 1)) / pivot_row[m]),
        ),
        Mutant("wrong z", "values moved by (1, −1, 1)", lambda: (_witness(["1", "-1", "1"]),)),
        Mutant("no difference", "the same history twice", lambda: (_witness(["0", "0", "0"]),)),
    ),
    remark="The approximation of e^{q·k} can be excellent at every single token; the collision uses exact"
    " cancellation between tokens, and z may have large entries when the features are good.",
    counterexample=Counterexample(
        fails=(
            r"With good features a fixed state $(\sum\phi(k)v^\top,\sum\phi(k))$ keeps what softmax "
            "attention needs."
        ),
        believed=(
            r"$\phi(q)\cdot\phi(k)$ can approximate $e^{q\cdot k}$ as closely as one likes, and the "
            "state collects every token."
        ),
        catch=(
            r"The $T\times m$ feature matrix $\Phi$ has more rows than columns, so $\Phi^\top z=0$ "
            r"for some $z\ne0$. Adding $zw^\top$ to the values changes neither the state nor the "
            "normaliser, whatever the feature map, for every $w$ and every value width."
        ),
        gap=r"$(a(q)\cdot z)\,w$; for the witness more than $\frac14$, enclosed as 0.265815.",
        witness=(
            "three tokens, features φ(k) = (1, k), z = (1, −2, 1): one state, softmax outputs 1/4 apart",
        ),
        smallest=(
            "For the features (1, k) three tokens are the fewest: two distinct keys have independent "
            "features. The search takes the first whole query that sees the collision (at 0 all "
            "weights agree and a·z = 0). With one feature two tokens are enough "
            "(collision.bilinear)."
        ),
        repair=(
            "None at fixed width: only more features than tokens, or memory that grows with the "
            "history, such as a cache or a later layer that still sees the tokens."
        ),
        repaired_by=("state.hybrid-repair", "memory.index-bound"),
        search="counterexamples.collision._search:null_space",
    ),
)
