"""The order of the seven words, the weakest-part rule and the exit codes."""

import pytest

from verify.model.verdict import Verdict, exit_code, weakest


def test_the_whole_is_as_weak_as_its_weakest_part() -> None:
    assert weakest([Verdict.PROVED, Verdict.BOUNDED, Verdict.SAMPLED]) is Verdict.SAMPLED
    assert weakest([Verdict.PROVED, Verdict.REFUTED]) is Verdict.REFUTED
    assert weakest([]) is Verdict.UNDECIDED


def test_only_the_four_upper_words_hold() -> None:
    assert [word for word in Verdict if word.holds] == [
        Verdict.SAMPLED,
        Verdict.BOUNDED,
        Verdict.CITED,
        Verdict.PROVED,
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([Verdict.PROVED, Verdict.SAMPLED], 0),
        ([Verdict.PROVED, Verdict.REFUTED, Verdict.UNDECIDED], 1),
        ([Verdict.VACUOUS], 1),
        ([Verdict.PROVED, Verdict.UNDECIDED], 3),
        ([], 3),
    ],
)
def test_exit_codes(words: list[Verdict], code: int) -> None:
    assert exit_code(words) == code
