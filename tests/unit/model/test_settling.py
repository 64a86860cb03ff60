"""Which words count: checkers over engines, agreement of solvers, mutants and cited theorems."""

from dataclasses import replace

from verify.model.claim import Assumption, Claim, Settled, Status
from verify.model.evidence import Check, Evidence, MutantOutcome, Obligation, Part, SettledPart
from verify.model.verdict import Verdict

OBLIGATION = Obligation("derivation", "something", "C", {})
YES = Check("checker", "checker", Verdict.PROVED, "")
CLAIM = Claim("a.b", "t", "s", "A", Status.AS_PRINTED, "all", (), (), "C", lambda: (), ())
KILLED = MutantOutcome("m", "d", Verdict.REFUTED)


def engine(word: Verdict) -> Check:
    return Check("engine", "engine", word, "")


def evidence(*checks: Check, best: Verdict = Verdict.PROVED) -> Evidence:
    return Evidence(replace(OBLIGATION, best=best), checks)


def settled(*items: Evidence, refutes: bool = False, claim: Claim = CLAIM) -> Settled:
    part = SettledPart(Part("s", tuple(item.obligation for item in items), refutes), items)
    return Settled(claim, (part,), (KILLED,))


def test_an_engine_alone_convinces_nobody() -> None:
    assert evidence(engine(Verdict.PROVED)).verdict is Verdict.UNDECIDED
    assert evidence().verdict is Verdict.UNDECIDED


def test_two_solvers_must_agree_and_both_must_answer() -> None:
    assert evidence(engine(Verdict.PROVED), engine(Verdict.PROVED)).verdict is Verdict.PROVED
    assert evidence(engine(Verdict.PROVED), engine(Verdict.UNDECIDED)).verdict is Verdict.UNDECIDED


def test_a_checker_convinces_unless_anybody_refutes() -> None:
    assert evidence(engine(Verdict.SAMPLED), YES).verdict is Verdict.PROVED
    assert evidence(engine(Verdict.REFUTED), YES).verdict is Verdict.REFUTED


def test_passing_supports_no_more_than_the_best_word() -> None:
    assert evidence(YES, best=Verdict.BOUNDED).verdict is Verdict.BOUNDED


def test_a_refuting_part_says_refuted_of_its_sentence_and_holds_itself() -> None:
    part = settled(evidence(YES), refutes=True).parts[0]
    assert (part.verdict, part.word) == (Verdict.PROVED, Verdict.REFUTED)
    failed = settled(evidence(engine(Verdict.REFUTED)), refutes=True).parts[0]
    assert failed.verdict is Verdict.REFUTED
    undecided = settled(evidence(), refutes=True).parts[0]
    assert (undecided.verdict, undecided.word) == (Verdict.UNDECIDED, Verdict.UNDECIDED)


def test_a_surviving_or_missing_mutant_makes_the_claim_vacuous() -> None:
    whole = settled(evidence(YES))
    assert whole.verdict is Verdict.PROVED
    assert replace(whole, mutants=()).verdict is Verdict.VACUOUS
    survivor = MutantOutcome("m", "d", Verdict.UNDECIDED)
    assert replace(whole, mutants=(KILLED, survivor)).verdict is Verdict.VACUOUS


def test_a_cited_theorem_caps_the_verdict() -> None:
    claim = replace(CLAIM, assumptions=(Assumption("invariance of domain", cited=True),))
    assert settled(evidence(YES), claim=claim).verdict is Verdict.CITED


def test_strengths_reached_are_those_of_evidence_that_holds() -> None:
    exact = Evidence(replace(OBLIGATION, strength="E"), (YES,))
    assert settled(evidence(engine(Verdict.REFUTED)), exact).reached == "E"
