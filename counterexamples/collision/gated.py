"""Gates that depend on the token do not keep GDN and KDA from merging histories.

The statement that fails: collisions are an artefact of linear attention, where the state is linear in the
values; with gates and strengths computed from each token the map from tokens to states is so nonlinear that
histories stay apart.

Why one would believe it: the null-space construction needs fixed features, and here the last token changes
its own key, value, strength and decay at once.

The catch: it is a smooth map all the same, from more numbers than the state has. Two tokens' entries are
enough to steer a state of two numbers wherever another history has led it.

The repair: none; count numbers. The collision is found by Newton's method and its existence certified by
Krawczyk's test: an interval map takes a tiny box of real tokens into itself, so a history with exactly the
same state lies in it.
"""

from fractions import Fraction
from functools import cache
from typing import Any

from sympy import Expr

from counterexamples.collision._gated import (
    FIRST,
    UNKNOWN,
    equations,
    preconditioner,
    program,
    second,
    softmax_output,
)
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

RADIUS = Fraction(1, 2**30)
CENTRES = {
    "gdn": (Fraction(486941950902, 2**40), Fraction(143093068044, 2**40)),
    "kda": (Fraction(503474289981, 2**40), Fraction(140932296222, 2**40)),
}
"""y_1 and y_2 from Newton's method, rounded."""


@cache
def _difference() -> Expr:
    """Softmax output of the first history minus that of the second."""
    return softmax_output(FIRST) - softmax_output(second())


def _collision(
    mechanism: str, above: str, shift: Fraction = Fraction(0), flipped: bool = False
) -> Obligation:
    centre = CENTRES[mechanism]
    inverse = preconditioner(mechanism, centre)
    if flipped:
        inverse.reverse()
    steps, (*system, apart) = program([*equations(mechanism), _difference()])
    data: dict[str, Any] = {
        "steps": steps,
        "variables": [symbol.name for symbol in UNKNOWN],
        "equations": system,
        "centre": [str(centre[0] + shift), str(centre[1])],
        "radius": [str(RADIUS)] * 2,
        "inverse": inverse,
        "apart": apart,
        "above": above,
    }
    label = (
        f"{mechanism.upper()}: a second history with the same state, softmax outputs more than {above} apart"
    )
    return Obligation("zero-in-box", label, "B", data)


def parts() -> tuple[Part, ...]:
    """One collision for each mechanism."""
    return (
        Part(
            r"GDN: the tokens $(1,0,1),(0,1,1),(1,1,0)$ and $(1,\frac12,\frac12),(0,1,y_1),(1,1,y_2)$ have"
            r" exactly one state"
            r" for some $y$ within $2^{-30}$ of $(0.44287,0.13014)$; softmax attention over the same keys"
            r" and values tells"
            r" them apart by more than $\frac12$.",
            (_collision("gdn", "1/2"),),
        ),
        Part(
            r"KDA, with one decay per channel: the same for some $y$ within $2^{-30}$ of"
            r" $(0.45791,0.12818)$.",
            (_collision("kda", "1/2"),),
        ),
    )


CLAIM = Claim(
    id="collision.gated",
    title="Gates that depend on the token do not keep GDN and KDA from merging histories",
    statement=(
        r"For GDN and for KDA with $K=2$, $V=1$ and keys, values, strengths and decays computed from each"
        r" token by fixed"
        r" projections (unit keys, sigmoid gates) there are two different histories of three real tokens"
        r" with exactly the same"
        r" state and softmax outputs more than $\frac12$ apart."
    ),
    source="new",
    status=Status.NEW,
    scope="these projections and histories; the same program searches others",
    variables=(
        Variable("x", r"token, $\mathbb{R}^3$"),
        Variable("k", r"$W_kx/\|W_kx\|$, $W_k=\begin{pmatrix}1&1/2&0\\-1/3&1&1/2\end{pmatrix}$"),
        Variable("v", r"$\frac12x_1-x_2+x_3$"),
        Variable(r"\beta", r"$\sigma(x_1+\frac14x_2-\frac12x_3)$"),
        Variable(
            r"\alpha",
            r"$\sigma(\frac12x_1+x_2+\frac13x_3)$ and, for KDA's other channel,"
            r" $\sigma(2x_1-\frac12x_2+x_3)$",
        ),
        Variable("q", r"query of the softmax, $(\frac32,-1)$"),
    ),
    assumptions=(
        Assumption(
            "zero initial state; tokens are real numbers, so the second history is known to within the box"
        ),
        Assumption("Krawczyk's test (from Brouwer's fixed-point theorem)", cited=True),
    ),
    asked="B",
    parts=parts,
    mutants=(
        Mutant("box beside", "a box moved by 2⁻²⁰", lambda: (_collision("gdn", "1/2", Fraction(1, 2**20)),)),
        Mutant(
            "wrong inverse",
            "the preconditioner with its rows exchanged",
            lambda: (_collision("kda", "1/2", flipped=True),),
        ),
        Mutant("gap", "outputs claimed 1 apart", lambda: (_collision("gdn", "1"),)),
    ),
    remark="The histories differ in their first token, and the two later tokens are answers to it: an"
    " adversary needs to see"
    " the projections, not to control every token.",
)
