"""Every collision of a fixed state is seen by some softmax query, and one can write it down."""

from sympy import Expr, IndexedBase, Rational, Sum, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, e, T, K = symbols("j e T K")
z, size, room, spare, weight = (IndexedBase(name) for name in ("z", "m", "r", "h", "x"))
k, top = IndexedBase("k"), IndexedBase("k'")
lead, most = symbols("z_0 x_0")


def _lead_over(longer: int) -> Obligation:
    """k'·k' − k'·k = ½(‖k' − k‖² + ‖k'‖² − ‖k‖²)."""

    def total(summand: Expr) -> Sum:
        return Sum(summand, (e, 1, K))

    chain = Chain(
        "lead of the longest key over another", Setting(instances=({K: 2}, {K: 3})), total(top[e] ** 2)
    )
    half = Rational(1, 2)
    apart = half * (total((top[e] - k[e]) ** 2) + longer * (total(top[e] ** 2) - total(k[e] ** 2)))
    return chain.rearrange("complete the square", total(top[e] * k[e]) + apart).obligation()


def _dominates(sign: int) -> Obligation:
    """z_0 + Σ z_j x_j ≥ z_0 − x_0 Σ m_j with m_j = |z_j| and 0 < x_j ≤ x_0."""
    definitions = (
        Definition("never below", room[j], size[j] + z[j], (j,)),
        Definition("at most", spare[j], most - weight[j], (j,)),
    )
    setting = Setting(definitions, nonnegative=(size, room, spare, weight), instances=({T: 2}, {T: 3}))
    others = Sum(z[j] * weight[j], (j, 1, T))
    chain = Chain("what a(q)·z is, up to a positive factor", setting, lead + sign * others)
    drawn, gone = Sum(room[j] * weight[j], (j, 1, T)), Sum(size[j] * spare[j], (j, 1, T))
    bound = lead - most * Sum(size[j], (j, 1, T))
    chain = chain.unfold("every other token at its worst", bound + drawn + gone, "never below", "at most")
    return chain.drop("both rests are at least 0", bound, drawn, gone).obligation()


def _witness(query: str, gap: str) -> Obligation:
    shared = {"features": [["1", "0"], ["1", "1"], ["1", "2"]], "keys": [["0"], ["1"], ["2"]]}
    data = {
        "first": {**shared, "values": [["0"], ["0"], ["0"]]},
        "second": {**shared, "values": [["1"], ["-2"], ["1"]]},
        "z": ["1", "-2", "1"],
        "w": ["1"],
        "query": [query],
        "gap": gap,
    }
    return Obligation("state-collision", f"keys 0, 1, 2 and z = (1, −2, 1) at q = {query}", "B", data)


def parts() -> tuple[Part, ...]:
    """The lead of the longest key, its dominance, a certified gap, and the printed weaker word."""
    return (
        Part(
            r"For the longest key $k'$ among those with $z_j\ne0$ and any other such key:"
            r" $k'\cdot k'-k'\cdot k_j=\frac12(\|k'-k_j\|^2+\|k'\|^2-\|k_j\|^2)>0$, the keys being distinct.",
            (_lead_over(1),),
        ),
        Part(
            r"At $q=\lambda k'$ the weights are proportional to $1$ for $k'$ and to $x_j=e^{-\lambda(k'\cdot"
            r" k'-k'\cdot k_j)}$ for the others, at most $x_0=e^{-\lambda\delta}$ for $\lambda\ge0$ and"
            r" $z_j\ne0$, with $\delta$ the smallest lead over these. With $z$ scaled so that $z_0>0$ at"
            r" $k'$: $z_0+\sum_jz_jx_j\ge z_0-x_0\sum_j|z_j|$, positive as soon as"
            r" $\lambda>\ln(\sum_j|z_j|/z_0)/\delta$.",
            (_dominates(1),),
        ),
        Part(
            r"Three tokens, $\phi(k)=(1,k)$, keys $0,1,2$, $z=(1,-2,1)$: the longest key is 2 with lead"
            r" $\delta=2$, and"
            r" $\lambda=1>\frac12\ln3$ gives $q=2$, where the outputs are more than $0.64$ apart.",
            (_witness("2", "64/100"),),
        ),
        Part(
            r"The printed «usually» read as: some collision is never seen, here this one, so that no query"
            r" makes the softmax outputs of its two histories differ.",
            (_witness("2", "64/100"),),
            refutes=True,
        ),
    )


CLAIM = Claim(
    id="collision.visible",
    title="Every collision of a fixed state is seen by some softmax query, and one can write it down",
    statement=(
        r"Let the keys be distinct, $z\ne0$, and $k'$ the longest key with $z\ne0$ on it. At $q=\lambda k'$"
        r" with $\lambda\ge0$ and $\lambda>\ln(\sum_{j}|z_j|/|z_0|)/\delta$, where $z_0$ is the entry at"
        r" $k'$, $\delta=\min_j(k'\cdot k'-k'\cdot k_j)>0$, and sum and minimum are over the other tokens"
        r" with $z_j\ne0$, $a(q)\cdot z\ne0$. So every collision along $zw^\top$, $w\ne0$, is visible:"
        r" always, not only usually."
    ),
    source="article A, section 3",
    status=Status.CORRECTED,
    scope="every T, every key width, distinct keys; ties of the longest key may be broken at will",
    variables=(
        Variable("k_j", r"distinct keys, $\mathbb{R}^K$"),
        Variable("z", r"\mathbb{R}^T\setminus\{0\}"),
        Variable("m_j", r"$|z_j|$"),
        Variable("x_j", r"weight of token $j$ over that of $k'$, in $(0,x_0]$"),
    ),
    assumptions=(
        Assumption("the keys are distinct: with equal keys z may move weight between them unseen"),
        Assumption("if k′ is the only token with z ≠ 0, the sum is empty and every query sees it"),
    ),
    asked="KB",
    parts=parts,
    mutants=(
        Mutant("shorter key", "the lead with the lengths exchanged", lambda: (_lead_over(-1),)),
        Mutant("sign", "the other tokens' sum subtracted", lambda: (_dominates(-1),)),
        Mutant("gap", "outputs claimed 0.65 apart", lambda: (_witness("2", "65/100"),)),
    ),
    remark="This also shows that exponential sums with distinct exponents are linearly independent, in any"
    " dimension.",
    counterexample=Counterexample(
        fails="Softmax usually tells merged histories apart, so for some of them no query does.",
        believed=(
            r"The softmax outputs differ by $(a(q)\cdot z)w$, and for a given query the weights may "
            "well be orthogonal to $z$."
        ),
        catch=(
            r"The weights move with the query. Take $q=\lambda k$ with $k$ the longest key that $z$ "
            r"uses: $k\cdot k$ exceeds $k\cdot k_j$ for every other key, so for large $\lambda$ this "
            r"one token outweighs all others together and $a(q)\cdot z$ cannot vanish."
        ),
        gap="More than $0.64$ at $q=2$, enclosed as 0.648069.",
        witness=("keys 0, 1, 2 and z = (1, −2, 1) at q = 2",),
        smallest=(
            "Three tokens are the fewest for the features (1, k), as in collision.nullspace. The "
            "search takes the first whole λ from the bound on, which is 1."
        ),
        repair="«Always, at a query that can be stated», provided the keys are distinct.",
        repaired_by=("collision.visible",),
        search="counterexamples.collision._search:visible",
    ),
)
