"""The decay figures: 0.98 over ten tokens, 0.99 over a thousand, and the tokens to one per cent."""

from typing import Any

from sympy import Expr, Integer, Symbol, log

from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

gate = Symbol("a")


def _bounds(
    label: str, term: Expr, value: str, above: str = "", below: str = "", printed: str = ""
) -> Obligation:
    data: dict[str, Any] = {"term": tree(term), "values": {"a": value}}
    stated = (("above", above), ("below", below), ("printed", printed))
    data |= {name: text for name, text in stated if text}
    return Obligation("inequality", label, "B", data)


def _tokens(count: int, above: str = "", below: str = "") -> Obligation:
    return _bounds(f"0.99 to the power {count} against 1/100", gate ** Integer(count), "99/100", above, below)


def parts() -> tuple[Part, ...]:
    """Three figures."""
    return (
        Part(
            r"$0.98^{10}=0.817\dots$",
            (_bounds("0.98 to the power 10", gate**10, "49/50", "817/1000", "818/1000", "0.817…"),),
        ),
        Part(
            r"$0.99^{1000}<10^{-4}$; it is $4.3\dots\cdot10^{-5}$.",
            (
                _bounds(
                    "0.99 to the power 1000", gate**1000, "99/100", "43/1000000", "44/1000000", "< 0.0001"
                ),
            ),
        ),
        Part(
            r"At $0.99$ one per cent is reached after $\ln0.01/\ln0.99=458.2\dots$ tokens: 458 tokens leave"
            r" $1.002\dots\%$, 459 are the first to leave less than $1\%$.",
            (
                _bounds(
                    "the number of tokens",
                    -log(Integer(100)) / log(gate),
                    "99/100",
                    "4582/10",
                    "4583/10",
                    "458",
                ),
                _tokens(458, above="1002/100000", below="1003/100000"),
                _tokens(458, above="1/100"),
                _tokens(459, below="1/100"),
            ),
        ),
    )


CLAIM = Claim(
    id="gate.numbers",
    title="The decay figures: 0.98 over ten tokens, 0.99 over a thousand, and the tokens to one per cent",
    statement=(
        r"$0.98^{10}=0.817\dots$, $0.99^{1000}<10^{-4}$, and at $0.99$ a token is down to one per cent after"
        r" $458.2\dots$ tokens: after 458 to the nearest, below one per cent from 459 on."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="these numbers",
    variables=(Variable("a", r"the gate, $0.98$ or $0.99$"),),
    assumptions=(Assumption("a constant scalar gate and no erase"),),
    asked="B",
    parts=parts,
    mutants=(
        Mutant("458 below", "0.99⁴⁵⁸ claimed below 1/100", lambda: (_tokens(458, below="1/100"),)),
        Mutant(
            "rounded figure",
            "0.98¹⁰ claimed above 0.818",
            lambda: (_bounds("mutant", gate**10, "49/50", "818/1000"),),
        ),
    ),
)
