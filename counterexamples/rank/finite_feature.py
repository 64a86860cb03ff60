"""No m features reproduce a score matrix of rank above m."""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, l, m, n = symbols("i j l m n")  # noqa: E741
phi, psi, c, image, score = (IndexedBase(name) for name in ("phi", "psi", "c", "d", "A"))
SIZES = ({m: 2, n: 3, i: 1, j: 1}, {m: 1, n: 2, i: 2, j: 2})
scores = Definition("score", score[i, j], Sum(phi[i, l] * psi[l, j], (l, 1, m)), (i, j))


def _span(last: Expr) -> Obligation:
    """A·c = Σ_l Φ_l (Ψc)_l: a combination of m vectors, whatever c."""
    mapped = Definition("Ψc", image[l], Sum(psi[l, j] * c[j], (j, 1, n)), (l,))
    setting = Setting((scores, mapped), instances=SIZES)
    chain = Chain("the product on any vector", setting, Sum(score[i, j] * c[j], (j, 1, n)))
    after = Sum(phi[i, l] * image[l], (l, 1, last))
    return chain.unfold("a combination of the columns of Φ", after, "score", "Ψc").obligation()


def _kernel(value: int) -> Obligation:
    """If Ψc = 0 then A·c = 0."""
    zero = Definition("Ψc", image[l], Integer(value), (l,))
    setting = Setting((zero,), nonempty=(m,), instances=({m: 2, i: 1}, {m: 3, i: 2}))
    chain = Chain("the product on a vector that Ψ sends to 0", setting, Sum(phi[i, l] * image[l], (l, 1, m)))
    return chain.unfold("every coefficient vanishes", Integer(0), "Ψc").obligation()


def _replay(rank: int) -> Obligation:
    """Φ (4×2) times Ψ (2×4), multiplied out."""
    left = [(1, 0), (0, 1), (1, 1), (2, -1)]
    right = [(1, 2, 0, 1), (0, 1, 3, -1)]
    rows = [[str(sum(x * row[k] for x, row in zip(f, right, strict=True))) for k in range(4)] for f in left]
    data = {"matrix": rows, "rank": rank}
    return Obligation("determinant", "a 4×4 score matrix of two features", "E", data)


def parts() -> tuple[Part, ...]:
    """The span, the kernel, and an example of full rank m."""
    return (
        Part(
            r"For $A=\Phi\Psi$ with $m$ features: $Ac=\sum_{l\le m}(\Psi c)_l\Phi_l$, a combination of the"
            r" $m$ columns of"
            r" $\Phi$, for every $c$. So the image of $A$ is spanned by $m$ vectors: its rank is at most"
            r" $m$.",
            (_span(m),),
        ),
        Part(
            r"If $\Psi c=0$ then $Ac=0$: the kernel of $A$ contains that of $\Psi$, of dimension at least"
            r" $n-m$.",
            (_kernel(0),),
        ),
        Part(r"The bound is attained: two features give a $4\times4$ matrix of rank 2.", (_replay(2),)),
    )


CLAIM = Claim(
    id="rank.finite-feature",
    title="No m features reproduce a score matrix of rank above m",
    statement=(
        r"For any $\Phi\in\mathbb{R}^{n\times m}$ and $\Psi\in\mathbb{R}^{m\times n'}$,"
        r" $\mathrm{rank}(\Phi\Psi)\le m$,"
        r" however the features are made; attained."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="every n, n', m, any feature maps; the example at n = 4, m = 2",
    variables=(
        Variable(r"\Phi", r"features of the queries, $\mathbb{R}^{n\times m}$"),
        Variable(r"\Psi", r"features of the keys, $\mathbb{R}^{m\times n'}$"),
        Variable("c", r"any vector, $\mathbb{R}^{n'}$"),
    ),
    assumptions=(Assumption("rank is the dimension of the image; m vectors span at most m dimensions"),),
    asked="K",
    parts=parts,
    mutants=(
        Mutant("one feature fewer", "a combination of m − 1 columns", lambda: (_span(m - 1),)),
        Mutant("not in the kernel", "Ψc = 1 claimed to be sent to 0", lambda: (_kernel(1),)),
        Mutant("rank 3", "two features claimed to give rank 3", lambda: (_replay(3),)),
    ),
    remark="The exponential's matrix has full rank for every n (rank.exponential-full).",
    counterexample=Counterexample(
        fails=(
            r"Enough training lets $m$ features $\phi(q)\cdot\psi(k)$ reproduce any score matrix of "
            "more than $m$ tokens."
        ),
        believed=(
            r"$\phi$ and $\psi$ may be arbitrary functions, of any smoothness and with any number of "
            "parameters."
        ),
        catch=(
            r"However they are made, $\Phi\Psi$ with $\Phi$ of $m$ columns maps into their span. A "
            r"vector $c$ that $\Psi$ sends to 0, and there is one among any $m+1$ columns, is sent to "
            "0 by the product."
        ),
        gap=(
            r"The rank of the scores minus $m$, exactly; at two features and a $4\times4$ matrix the "
            "rank is 2, against 4 for $e^{q_ik_j}$."
        ),
        witness=(
            "the product on any vector",
            "the product on a vector that Ψ sends to 0",
            "a 4×4 score matrix of two features",
        ),
        smallest=(
            "Proved for every m: m + 1 tokens are the fewest with a score matrix out of reach. The "
            "example of two features was made by hand and shows that the bound is attained."
        ),
        repair="State the error floor instead, or use a score that is no finite sum of products.",
        repaired_by=("rank.gap", "rank.exponential-full"),
    ),
)
