"""Full attention after a compressing layer separates what it merged, if the tokens still reach it.

Two histories with one state: everything that is computed from the state and from later tokens agrees. A
later layer that attends to the tokens themselves, handed on by the residual stream, is not bound to the
state and tells the histories apart; one that attends to the outputs after the merge alone sees two equal
lists.
"""

from typing import Any

from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

KEYS = [["0"], ["1"], ["2"]]
FEATURES = [["1", "0"], ["1", "1"], ["1", "2"]]
FIRST = [["0"], ["0"], ["0"]]
SECOND = [["1"], ["-2"], ["1"]]


def _separates(second: list[list[str]]) -> Obligation:
    shared: dict[str, Any] = {"features": FEATURES, "keys": KEYS}
    data = {
        "first": {**shared, "values": FIRST},
        "second": {**shared, "values": second},
        "query": ["1"],
        "gap": "1/4",
    }
    label = "one state in the first layer; softmax over the tokens themselves is 1/4 apart"
    return Obligation("state-collision", label, "E", data)


def _outputs(values: list[list[str]], outputs: list[list[str]], label: str) -> Obligation:
    """Linear attention over the history and two later tokens; history tokens query with 0."""
    data = {
        "queries": [["0", "0"]] * 3 + [["2", "1"], ["-1", "3"]],
        "keys": [*FEATURES, ["1", "5"], ["1", "-1"]],
        "values": [*values, ["7"], ["4"]],
        "chunk": 5,
        "mask": "causal",
        "outputs": [["0"]] * 3 + outputs,
    }
    return Obligation("linear-attention", label, "E", data)


LATER = [["49"], ["82"]]


def _one_step(same_token: bool) -> Obligation:
    token = "(assert (= x y))\n" if same_token else ""
    text = f"""(set-logic QF_UF)
(declare-sort State 0)(declare-sort Token 0)(declare-sort Output 0)
(declare-fun update (State Token) State)(declare-fun read (State Token) Output)
(declare-const s State)(declare-const t State)(declare-const x Token)(declare-const y Token)
(assert (= s t))
{token}(assert (not (and (= (update s x) (update t y)) (= (read (update s x) x) (read (update t y) y)))))
(check-sat)
"""
    label = "equal states and one later token: equal next states and equal outputs"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_UF"})


def parts() -> tuple[Part, ...]:
    """What stays merged, the same in numbers, and what the residual stream saves."""
    return (
        Part(
            r"Once two histories have one state, every later token leaves them with one state and one"
            r" output, whatever the"
            r" update and the reader (so, by induction, all later tokens do). Any later layer that sees"
            r" these outputs alone"
            r" computes the same from both.",
            (_one_step(same_token=True),),
        ),
        Part(
            r"In numbers: features $(1,k)$, keys $0,1,2$, values $0,0,0$ against $1,-2,1$: two later tokens"
            r" get the outputs"
            r" $49$ and $82$ after either.",
            (
                _outputs(FIRST, LATER, "outputs of later tokens after the first history"),
                _outputs(SECOND, LATER, "outputs of later tokens after the second history"),
            ),
        ),
        Part(
            r"If the tokens themselves reach the later layer, its softmax tells the two histories apart, by"
            r" $\frac14$ at"
            r" $q=1$.",
            (_separates(SECOND),),
        ),
    )


CLAIM = Claim(
    id="state.hybrid-repair",
    title="Full attention after a compressing layer separates what it merged, if the tokens still reach it",
    statement=(
        r"Two histories that a compressing layer has brought to one state stay merged for everything"
        r" computed from the"
        r" state and later tokens; a later full-attention layer separates them if the tokens of the"
        r" histories reach it by"
        r" the residual stream, and cannot if it sees the outputs after the merge alone. Witnesses for both."
    ),
    source="article B, section 1",
    status=Status.AS_PRINTED,
    scope="the first part for any update and reader; the witness has 3 history tokens, 2 features, 2 later"
    " tokens",
    variables=(
        Variable("S", "state of the compressing layer"),
        Variable("q", "query of the later layer"),
    ),
    assumptions=(
        Assumption("layers are deterministic functions of what they see"),
        Assumption("«outputs after the merge»: outputs at the history's own tokens would give them away"),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant(
            "other tokens", "different later tokens claimed to keep states equal", lambda: (_one_step(False),)
        ),
        Mutant("not merged", "values that change the state", lambda: (_separates([["1"], ["0"], ["0"]]),)),
        Mutant(
            "output",
            "another output after the second history",
            lambda: (_outputs(SECOND, [["49"], ["81"]], "mutant"),),
        ),
    ),
    remark="Which of the two holds is a matter of wiring, not of the compressing layer.",
)
