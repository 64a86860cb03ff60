"""A reader of a state reproduces a function of the history iff equal states imply equal functions.

One direction is that a reader is a function: it answers equal states equally. For the other, pick for every
state that occurs one history that leads to it and let the reader answer with that history's value.
"""

from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

DECLARED = """(set-logic QF_UF)
(declare-sort History 0)(declare-sort State 0)(declare-sort Answer 0)
(declare-fun state (History) State)(declare-fun wanted (History) Answer)
(declare-fun reader (State) Answer)(declare-fun picked (State) History)
(declare-const h History)(declare-const other History)
"""
CRITERION = "(=> (= (state {0}) (state {1})) (= (wanted {0}) (wanted {1})))"
CHOSEN = "(picked (state h))"


def _query(label: str, *conditions: str, expect: str = "unsat") -> Obligation:
    asserts = "".join(f"(assert {condition})\n" for condition in conditions)
    data = {"smtlib": f"{DECLARED}{asserts}(check-sat)\n", "expect": expect, "logic": "QF_UF"}
    return Obligation("smt", label, "S", data)


RIGHT = ("(= (reader (state h)) (wanted h))", "(= (reader (state other)) (wanted other))")


def _necessary(*answers: str) -> Obligation:
    label = "a reader that is right about both histories makes the criterion hold for them"
    return _query(label, *answers, f"(not {CRITERION.format('h', 'other')})")


def _sufficient(*facts: str) -> Obligation:
    reads = f"(= (reader (state h)) (wanted {CHOSEN}))"
    label = "the reader that answers with a picked history's value is right"
    return _query(label, reads, *facts, "(not (= (reader (state h)) (wanted h)))")


LEADS_THERE = f"(= (state {CHOSEN}) (state h))"


def parts() -> tuple[Part, ...]:
    """Both directions, each for arbitrary histories."""
    return (
        Part(
            r"If a reader $R$ has $R(S(h))=F(h)$ for all histories $h$, then $S(h)=S(h')$ implies"
            r" $F(h)=F(h')$.",
            (_necessary(*RIGHT),),
        ),
        Part(
            r"If equal states imply equal values of $F$, let $c(s)$ be a history with state $s$ for every"
            r" state that"
            r" occurs; $R(s)=F(c(s))$ has $R(S(h))=F(h)$ for all $h$.",
            (_sufficient(LEADS_THERE, CRITERION.format(CHOSEN, "h")),),
        ),
    )


CLAIM = Claim(
    id="state.factor-criterion",
    title="A reader of a state reproduces a function of the history iff equal states imply equal functions",
    statement=(
        r"For $S$ from histories to states and $F$ from histories to answers there is a reader $R$ with"
        r" $F=R\circ S$ iff"
        r" $S(h)=S(h')$ implies $F(h)=F(h')$. The answer may be a function of the query."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="any sets of histories, states and answers, any functions",
    variables=(
        Variable("h, h'", "histories"),
        Variable("S", "state of a history"),
        Variable("F", "what is to be reproduced, e.g. the attention output as a function of the query"),
    ),
    assumptions=(
        Assumption("the reader sees nothing but the state (and the query)"),
        Assumption(
            "R needs to be defined on the states that occur only, and there F(c(s)) does not depend on the"
            " choice"
        ),
    ),
    asked="K",
    parts=parts,
    mutants=(
        Mutant(
            "right about one",
            "a reader that is right about one of two histories",
            lambda: (_necessary(RIGHT[0]),),
        ),
        Mutant(
            "no criterion", "the picked reader without the criterion", lambda: (_sufficient(LEADS_THERE),)
        ),
        Mutant(
            "another state",
            "a picked history whose state is another one",
            lambda: (_sufficient(CRITERION.format(CHOSEN, "h")),),
        ),
    ),
    remark="So a collision, two histories with one state that softmax tells apart, settles that no reader"
    " exists.",
)
