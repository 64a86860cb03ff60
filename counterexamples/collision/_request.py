"""The claim that a user's features merge two histories which softmax tells apart."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from counterexamples.collision import _construct, _enclosed
from counterexamples.collision._features import Features
from counterexamples.collision._nullspace import null_vector
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.errors import RequestError
from verify.model.evidence import Obligation, Part

Data = dict[str, Any]
LARGEST_EXACT_BITS = 14000
"""Largest entries of an exact null vector that are written out; beyond, it is enclosed."""


def claim(name: str, what: str, features: Features, keys: Sequence[Sequence[Fraction]], width: int) -> Claim:
    """The claim ``request.NAME``.

    Args:
        name: of the request.
        what: whose features they are, e.g. a file's name.
        features: of the keys, T×m.
        keys: T×K.
        width: V, the width of the values.

    Raises:
        RequestError: two keys are equal, or T ≤ m and no collision is forced.
        SearchEnded: the null vector, or a query that separates, could not be certified.
    """
    places: dict[tuple[Fraction, ...], int] = {}
    for t, key in enumerate(keys):
        earlier = places.setdefault(tuple(key), t)
        if earlier != t:
            raise RequestError(
                f"tokens {earlier + 1} and {t + 1} have one key, so that no reader tells them apart; give"
                " distinct keys"
            )
    kind, data = _evidence(features, keys, width)
    tokens, count = len(keys), len(_rows(kind, data)[0])
    label = f"{tokens} tokens, {count} features {features.how}, query ({_short(data['query'])})"
    gap = f"{Decimal(Fraction(data['gap']).numerator) / Decimal(Fraction(data['gap']).denominator)}"
    return Claim(
        id=f"request.{name}",
        title=f"Two histories that {count} features cannot tell apart, and softmax can",
        statement=f"The features of {what} have $T={tokens}$ tokens and $m={count}$ columns. The histories"
        r" with these keys and the values $V$ and $V+zw^\top$ of the witness have one state"
        r" $\sum_t\phi_tv_t^\top$ and one normaliser $\sum_t\phi_t$, so every reader of the two answers both"
        f" alike, normalised or not; at the query of the witness softmax attention answers more than ${gap}$"
        " apart.",
        source="request",
        status=Status.NEW,
        scope=f"these features, keys and values: T = {tokens}, m = {count}, K = {len(keys[0])}, V = {width}",
        variables=(
            Variable(r"\phi_t", rf"features of token t, $\mathbb{{R}}^{{{count}}}$"),
            Variable("z", rf"null vector of the features, $\mathbb{{R}}^{{{tokens}}}$"),
            Variable("w", rf"direction of the values, $\mathbb{{R}}^{{{width}}}$"),
        ),
        assumptions=_assumptions(kind, features.how),
        asked="E" if kind == "state-collision" else "B",
        parts=lambda: (Part(_sentence(kind, gap), (_obligation(kind, label, data),)),),
        mutants=tuple(_mutants(kind, data)),
        remark="More tokens than features always collide, whatever the features (collision.nullspace), and"
        " for values of every width (collision.width).",
    )


def _evidence(features: Features, keys: Sequence[Sequence[Fraction]], width: int) -> tuple[str, Data]:
    if features.rational is not None:
        z = null_vector(features.rational)
        if max(abs(x) for x in z).bit_length() <= LARGEST_EXACT_BITS:
            return "state-collision", _construct.collide(features.rational, z, keys, width)
    return "enclosed-collision", _enclosed.collide(features, keys, width)


def _sentence(kind: str, gap: str) -> str:
    if kind == "state-collision":
        return (
            r"$\Phi^\top z=0$ exactly; states and normalisers of $V$ and $V+zw^\top$ are equal, and the"
            rf" softmax outputs differ by more than ${gap}$ in some coordinate."
        )
    return (
        r"For all features in the enclosures exactly one $z$ with $\Phi^\top z=0$ agrees with the stated one"
        r" off the pivots, and it is near it; states and normalisers of $V$ and $V+zw^\top$ are equal, and"
        rf" the softmax outputs differ by more than ${gap}$ in some coordinate."
    )


def _assumptions(kind: str, how: str) -> tuple[Assumption, ...]:
    computed = f"the features are those of the user's object, {how}"
    if kind == "enclosed-collision":
        computed += "; the enclosures hold the true ones (FLINT's balls, rounded outwards)"
    return (
        Assumption(computed),
        Assumption("both histories have the same keys, so the same features, softmax weights and normaliser"),
    )


def _obligation(kind: str, label: str, data: Data) -> Obligation:
    return Obligation(kind, label, "E" if kind == "state-collision" else "B", data)


def _mutants(kind: str, data: Data) -> list[Mutant]:
    def mutant(name: str, description: str, **changes: Any) -> Mutant:
        return Mutant(name, description, lambda: (_obligation(kind, description, {**data, **changes}),))

    exact = kind == "state-collision"
    place = 0 if exact else data["pivots"][0]
    step = Fraction(1, 7) if exact else 2 * int(data["z_radius"]) + 1
    z = [str(Fraction(x) + step * (t == place)) for t, x in enumerate(data["z"])]
    found = [
        mutant("gap doubled", "outputs claimed twice as far apart", gap=str(2 * Fraction(data["gap"]))),
        mutant("z moved", "another number in the null vector", z=z),
    ]
    if exact:
        (value, *others), *rows = data["second"]["values"]
        values = [[str(Fraction(value) + 1), *others], *rows]
        second = {**data["second"], "values": values}
        return [*found, mutant("value changed", "another value in the second history", second=second)]
    rough = mutant("rough features", "features known to ±1 only", feature_radius=str(1 << data["bits"]))
    return [*found, rough]


def _rows(kind: str, data: Data) -> list[list[str]]:
    features: list[list[str]] = data["first"]["features"] if kind == "state-collision" else data["features"]
    return features


def _short(query: Sequence[str]) -> str:
    shown = ", ".join(query[:4])
    return f"{shown}, …" if len(query) > 4 else shown
