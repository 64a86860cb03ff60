"""Two token histories with one state of a gated head, as data for the checker and as a claim."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from counterexamples.collision._gated_layer import Layer, Rows
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

ASSUMPTIONS = (
    Assumption("zero initial state, real arithmetic, no convolution before the projections"),
    Assumption("tokens are real numbers, so the second history is known to within the box"),
    Assumption("Krawczyk's test (from Brouwer's fixed-point theorem)", cited=True),
)


@dataclass(frozen=True)
class Collision:
    """Two histories T×D with one state: the second holds some zero of the box around its unknown entries.

    Attributes:
        layer: the head.
        first: exact.
        second: exact but for the entries at ``unknown``, which hold the centre of the box.
        unknown: K·V pairs (token, coordinate).
        radius: of the box in every unknown.
        inverse: near the inverse of the derivative of the state in the unknowns, K·V×K·V.
        next_token: the token D that comes next in both.
        gap: less than the distance of some coordinate of the two softmax outputs there, on the whole box.
    """

    layer: Layer
    first: Rows
    second: Rows
    unknown: Sequence[tuple[int, int]]
    radius: Fraction
    inverse: Rows
    next_token: list[Fraction]
    gap: Fraction

    def obligation(self, label: str) -> Obligation:
        """The two histories for the checker."""
        data: dict[str, Any] = {
            "layer": self.layer.data(),
            "unknown": [list(place) for place in self.unknown],
            "radius": str(self.radius),
            "next_token": list(map(str, self.next_token)),
            "gap": str(self.gap),
        }
        for name in ("first", "second", "inverse"):
            data[name] = [list(map(str, row)) for row in getattr(self, name)]
        return Obligation("gated-collision", label, "B", data)

    def mutants(self) -> tuple[Mutant, ...]:
        """A box beside this one, outputs claimed too far apart, and two tokens of one history exchanged."""
        (t, i), *_ = self.unknown
        moved = [list(row) for row in self.second]
        moved[t][i] += 1024 * self.radius
        variants: list[tuple[str, str, dict[str, Any]]] = [
            ("box beside", "the box moved by 1024 radii", {"second": moved}),
            ("gap", "softmax outputs claimed twice as far apart", {"gap": 2 * self.gap}),
        ]
        if len(self.second) > 1:
            swapped = [*self.second[:-2], self.second[-1], self.second[-2]]
            variants.append(("order", "the last two tokens of the second exchanged", {"second": swapped}))
        return tuple(self._mutant(*variant) for variant in variants)

    def _mutant(self, name: str, description: str, changes: dict[str, Any]) -> Mutant:
        return Mutant(name, description, lambda: (replace(self, **changes).obligation(name),))


def claim(name: str, collision: Collision) -> Claim:
    """The claim ``request.NAME`` that this head merges the two histories."""
    layer, tokens = collision.layer, len(collision.first)
    keys, values, width = layer.sizes
    kind, noun = layer.mechanism.upper(), "token" if tokens == 1 else "tokens"
    sentence = (
        f"Two different histories of ${tokens}$ real {noun} in $\\mathbb{{R}}^{{{width}}}$ give this {kind}"
        f" head with $K={keys}$, $V={values}$ exactly the same state. After the same next token its outputs"
        f" agree, then and ever after, while those of softmax attention with the same $q$, $k$, $v$ differ by"
        f" more than ${float(collision.gap):g}$ in some coordinate."
    )
    label = f"{tokens} {noun}, one {keys}×{values} state, softmax outputs more than {collision.gap} apart"
    return Claim(
        id=f"request.{name}",
        title=f"A {kind} head merges two histories of {tokens} {noun} that softmax tells apart",
        statement=sentence,
        source="request",
        status=Status.NEW,
        scope="these weights and histories",
        variables=(
            Variable("q, k", r"$n(w_qx)$, $n(w_kx)$ with $n(y)=y/\sqrt{\sum y_i^2+10^{-6}}$"),
            Variable("v", r"$w_vx$"),
            Variable(r"\beta", r"$\sigma(w_\beta\cdot x)$"),
            Variable(r"\alpha", r"$\ln\alpha=-e^A\ln(1+e^{w_gx+b})$"),
        ),
        assumptions=ASSUMPTIONS,
        asked="B",
        parts=lambda: (Part(sentence, (collision.obligation(label),)),),
        mutants=collision.mutants(),
        remark=f"The second history differs from the first in {_differences(collision)} of {tokens * width}"
        f" token entries; {keys * values} of them are the unknowns that Newton's method solved for.",
    )


def _differences(collision: Collision) -> int:
    pairs = zip(collision.first, collision.second, strict=True)
    return sum(x != y for one, other in pairs for x, y in zip(one, other, strict=True))
