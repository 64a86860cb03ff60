"""Gates that depend on the token do not keep GDN and KDA from merging histories."""

from dataclasses import replace
from fractions import Fraction

from counterexamples.collision._gated_layer import Layer, Rows, read
from counterexamples.collision._gated_pair import ASSUMPTIONS, Collision
from verify.model.claim import Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

GRID = 2**40
UNKNOWN = ((1, 2), (2, 2))
"""The last entries of the second and third token."""
FIRST: Rows = [[Fraction(x) for x in token] for token in ((1, 0, 1), (0, 1, 1), (1, 1, 0))]
CHANGED = [Fraction(1), Fraction(1, 2), Fraction(1, 2)]
"""First token of the second history."""
NEXT_TOKEN = [Fraction(1), Fraction(0), Fraction(-1)]
CENTRES = {"gdn": (486942187124, 143093195410), "kda": (503474539709, 140932421456)}
"""y_1 and y_2 from Newton's method, in units of 1/GRID."""
INVERSES = {
    "gdn": (("-1.121286", "3.069507"), ("1.192592", "0.161782")),
    "kda": (("-0.981335", "2.931366"), ("1.174556", "0.179389")),
}


def layer(mechanism: str) -> Layer:
    """The head, ``"gdn"`` or ``"kda"``; its decay σ(−w_gate x) has A_log and dt_bias 0."""
    gates = (("-1/2", -1, "-1/3"), (-2, "1/2", -1))
    return read(
        {
            "w_q": ((1, 0, 0), (0, 1, 0)),
            "w_k": ((1, "1/2", 0), ("-1/3", 1, "1/2")),
            "w_v": (("1/2", -1, 1),),
            "w_beta": (1, "1/4", "-1/2"),
            "w_gate": gates[0] if mechanism == "gdn" else gates,
        }
    )


def collision(mechanism: str) -> Collision:
    """The two histories of one mechanism."""
    y_1, y_2 = (Fraction(y, GRID) for y in CENTRES[mechanism])
    second = [CHANGED, [*FIRST[1][:2], y_1], [*FIRST[2][:2], y_2]]
    return Collision(
        layer(mechanism),
        FIRST,
        second,
        UNKNOWN,
        radius=Fraction(1, 2**30),
        inverse=[[Fraction(x) for x in row] for row in INVERSES[mechanism]],
        next_token=NEXT_TOKEN,
        gap=Fraction(1, 3),
    )


def _obligation(mechanism: str) -> Obligation:
    label = f"{mechanism.upper()}: a second history with the same state, softmax outputs more than 1/3 apart"
    return collision(mechanism).obligation(label)


def parts() -> tuple[Part, ...]:
    """One collision for each mechanism."""
    return (
        Part(
            r"GDN: the tokens $(1,0,1),(0,1,1),(1,1,0)$ and $(1,\frac12,\frac12),(0,1,y_1),(1,1,y_2)$ have"
            r" exactly one state for some $y$ within $2^{-30}$ of $(0.44287,0.13014)$; when $(1,0,-1)$"
            r" comes next, softmax attention over the same keys and values tells them apart by more than"
            r" $\frac13$.",
            (_obligation("gdn"),),
        ),
        Part(
            r"KDA, with one decay per channel: the same for some $y$ within $2^{-30}$ of"
            r" $(0.45791,0.12818)$.",
            (_obligation("kda"),),
        ),
    )


def _flipped() -> tuple[Obligation, ...]:
    right = collision("kda")
    return (replace(right, inverse=right.inverse[::-1]).obligation("wrong inverse"),)


CLAIM = Claim(
    id="collision.gated",
    title="Gates that depend on the token do not keep GDN and KDA from merging histories",
    statement=(
        r"For GDN and for KDA with $K=2$, $V=1$ and keys, values, strengths and decays computed from each"
        r" token by fixed projections (normed keys, sigmoid gates) there are two different histories of three"
        r" real tokens with exactly the same state and, at the same next token, softmax outputs more than"
        r" $\frac13$ apart."
    ),
    source="new",
    status=Status.NEW,
    scope="these projections and histories; attnproof refute gated-collision searches for others",
    variables=(
        Variable("x", r"token, $\mathbb{R}^3$"),
        Variable("k", r"$n(W_kx)$, $W_k=\begin{pmatrix}1&1/2&0\\-1/3&1&1/2\end{pmatrix}$"),
        Variable("n(y)", r"$y/\sqrt{\sum y_i^2+10^{-6}}$, the norm of the kernels"),
        Variable("v", r"$\frac12x_1-x_2+x_3$"),
        Variable(r"\beta", r"$\sigma(x_1+\frac14x_2-\frac12x_3)$"),
        Variable(
            r"\alpha",
            r"$\sigma(\frac12x_1+x_2+\frac13x_3)$ and, for KDA's other channel,"
            r" $\sigma(2x_1-\frac12x_2+x_3)$",
        ),
        Variable("q", r"query of the softmax, $n((x_1,x_2))$, its scale $1/\sqrt2$"),
    ),
    assumptions=ASSUMPTIONS,
    asked="B",
    parts=parts,
    mutants=(
        *collision("gdn").mutants(),
        Mutant("wrong inverse", "the preconditioner with its rows exchanged", _flipped),
    ),
    remark="The histories differ in their first token, and the two later tokens are answers to it: an"
    " adversary needs to see the projections, not to control every token.",
    counterexample=Counterexample(
        fails=(
            "Collisions are an artefact of linear attention, where the state is linear in the "
            "values; with gates and strengths computed from each token the map from tokens to states "
            "is so nonlinear that histories stay apart."
        ),
        believed=(
            "The null-space construction needs fixed features, and here the last token changes its "
            "own key, value, strength and decay at once."
        ),
        catch=(
            "It is a smooth map all the same, from more numbers than the state has. Two tokens' "
            "entries are enough to steer a state of two numbers wherever another history has led it."
        ),
        gap=(
            "The states agree exactly; the softmax outputs are enclosed as 0.364453 (GDN) and 0.362047 "
            r"(KDA) apart, certainly more than $\frac13$."
        ),
        witness=(
            "GDN: a second history with the same state, softmax outputs more than 1/3 apart",
            "KDA: a second history with the same state, softmax outputs more than 1/3 apart",
        ),
        smallest=(
            "Not established. Two unknown entries are the fewest for a state of two numbers; one "
            "stands in each of the last two tokens, and the first token is what differs."
        ),
        repair=(
            "None at fixed width; count numbers. The collision is found by Newton's method and its "
            "existence certified by Krawczyk's test: an interval map takes a tiny box of real tokens "
            "into itself, so a history with exactly the same state lies in it. A later layer that "
            "still sees the tokens can separate them."
        ),
        repaired_by=("state.dimension-wall", "state.hybrid-repair"),
        search="counterexamples.collision._search:gated",
    ),
)
