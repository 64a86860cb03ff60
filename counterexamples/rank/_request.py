"""The claim on the rank of a user's softmax matrix, and on the error of every kernel of m features."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from counterexamples.rank._spectrum import DIGITS, Spectrum, spectrum
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

Rows = Sequence[Sequence[Fraction]]
Data = dict[str, Any]
MOST_SHOWN = 12
SHOWN_DIGITS = 6
KIND = "singular-values"


def claim(name: str, queries: Rows, keys: Rows, scale: Fraction, features: int | None) -> Claim:
    """The claim ``request.NAME``.

    Args:
        name: of the request.
        queries: n×d.
        keys: n'×d.
        scale: what the products of queries and keys are multiplied by.
        features: the m to speak of; every m when None.
    """
    found = spectrum(queries, keys, scale)
    floors = [_floor(found, m) for m in range(len(found.values))]
    data = {
        "queries": [[str(x) for x in row] for row in queries],
        "keys": [[str(x) for x in row] for row in keys],
        "scale": str(scale),
        "bits": found.bits,
        "singular_values": [[str(low), str(high)] for low, high in found.values],
        "rank": [found.least, found.most],
        "floors": floors,
    }
    label = f"softmax matrix of {len(queries)} queries and {len(keys)} keys"
    rank = f"{found.least}" if found.least == found.most else f"at least {found.least}, at most {found.most}"
    return Claim(
        id=f"request.{name}",
        title=f"A softmax matrix of rank {rank}, and what m features must miss",
        statement=r"The matrix $A_{ij}=e^{s\,q_i\cdot k_j}/\sum_le^{s\,q_i\cdot k_l}$ of the"
        f" ${len(queries)}$ queries and ${len(keys)}$ keys, $s={scale}$, has rank {rank}. Every kernel of $m$"
        r" features, normalised or not, gives a matrix $B$ of rank at most $m$, so"
        r" $\|A-B\|_2\ge\sigma_{m+1}$ and $\|A-B\|_F\ge(\sum_{i>m}\sigma_i^2)^{1/2}$; a matrix of"
        " rank at most m attains both. With values $V=I$ this is the error of the output.",
        source="request",
        status=Status.NEW,
        scope=f"these queries and keys, of width {len(queries[0])}",
        variables=(
            Variable(r"\sigma_i", "singular values of A, the largest first"),
            Variable("m", "number of features"),
        ),
        assumptions=(
            Assumption("Sylvester's law of inertia", cited=True),
            Assumption(
                "Eckart, Young and Mirsky: the distance of a matrix from those of rank m is given by its"
                " singular values",
                cited=True,
            ),
        ),
        asked="B",
        parts=lambda: (Part(_sentence(rank, floors, features), (Obligation(KIND, label, "B", data),)),),
        mutants=_mutants(data, found),
        remark="Which rank the matrix has at all is the subject of rank.exponential-full and"
        " rank.softmax-same; a lower bound that rests on no theorem is in rank.gap.",
    )


def _floor(found: Spectrum, m: int) -> Data:
    rest = found.values[m:]
    squares = [sum((ends[side] ** 2 for ends in rest), Fraction(0)) for side in (0, 1)]
    frobenius = [_root(squares[0], ROUND_FLOOR), _root(squares[1], ROUND_CEILING)]
    return {
        "features": m,
        "spectral": [str(end) for end in rest[0]],
        "frobenius": [str(end) for end in frobenius],
    }


def _root(square: Fraction, rounding: str) -> Fraction:
    """A decimal on the stated side of the root."""
    context = Context(prec=DIGITS + 4, rounding=rounding)
    root = context.divide(Decimal(square.numerator), Decimal(square.denominator))
    # Decimal's root is rounded to the nearest; the step goes past that error.
    near = Context(prec=DIGITS + 2).sqrt(root)
    step = Fraction(10) ** (near.adjusted() - DIGITS) if near else Fraction(0)
    return Fraction(near) + (step if rounding == ROUND_CEILING else -step)


def _sentence(rank: str, floors: Sequence[Data], features: int | None) -> str:
    chosen = [floor for floor in floors[1:] if features in (None, floor["features"])]
    shown = "; ".join(
        f"$m={floor['features']}$: ${below(floor['spectral'][0])}$ and ${below(floor['frobenius'][0])}$"
        for floor in chosen[:MOST_SHOWN]
    )
    more = f"; and so on to $m={len(floors) - 1}$" if len(chosen) > MOST_SHOWN else ""
    least = f"; {features} features suffice" if features is not None and not chosen else ""
    errors = (
        f"; no kernel of $m$ features errs by less, spectral and Frobenius: {shown}{more}" if shown else ""
    )
    return f"The rank is {rank}{errors}{least}."


def below(value: str) -> str:
    """A few digits of an exact number, rounded down."""
    fraction = Fraction(value)
    context = Context(prec=SHOWN_DIGITS, rounding=ROUND_FLOOR)
    return f"{context.divide(Decimal(fraction.numerator), Decimal(fraction.denominator)):g}"


def _mutants(data: Data, found: Spectrum) -> tuple[Mutant, ...]:
    def mutant(name: str, description: str, **changes: Any) -> Mutant:
        return Mutant(name, description, lambda: (Obligation(KIND, description, "B", {**data, **changes}),))

    low, high = found.values[0]
    above = [[str(high), str(2 * high)], *data["singular_values"][1:]]
    under = [["0", str(low / 2)], *[["0", str(low / 2)]] * (len(found.values) - 1)]
    floor = {**data["floors"][0], "frobenius": [str(x) for x in (2 * _size(found), 3 * _size(found))]}
    return (
        mutant("value too large", "the largest singular value above its bound", singular_values=above),
        mutant("values too small", "all singular values under half the largest", singular_values=under),
        mutant("rank too large", "a rank above what the bounds show", rank=[found.least + 1, found.most + 1]),
        mutant("floor too high", "twice the error that no features make", floors=[floor]),
    )


def _size(found: Spectrum) -> Fraction:
    return sum((high for _, high in found.values), Fraction(0))
