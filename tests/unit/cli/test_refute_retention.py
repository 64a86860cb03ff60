"""``attnproof refute retention`` from outside, and its shares against KDA's definition."""

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from counterexamples.kda._kept import Head
from counterexamples.kda._retention import claim
from derivations.kda.definition import recurrence
from verify.cli.refute.retention import retention
from verify.model import certificate
from verify.model.errors import RequestError
from verify.model.judges import ask
from verify.model.verdict import Verdict
from verify.numbers.exact import Exact
from verify.recheck import recheck


def head(tokens: int, width: int, logarithms: bool = False) -> Head:
    source = random.Random(tokens)
    low, high = (-40, 0) if logarithms else (1, 10)
    return Head(
        [[Fraction(source.randint(low, high), 10) for _ in range(width)] for _ in range(tokens)],
        logarithms,
        [Fraction(source.randint(1, 20), 10) for _ in range(tokens)],
        [[Fraction(source.randint(-4, 4) or 1) for _ in range(width)] for _ in range(tokens)],
    )


def test_shares_are_those_of_the_definition() -> None:
    """Values e_j, so that column j of the last state is what token j wrote and still is there."""
    given, numbers = head(6, 2), Exact()
    assert given.keys is not None
    # Keys that are unit and rational.
    keys = [
        [Fraction(3, 5), Fraction(4, 5)],
        [Fraction(-4, 5), Fraction(3, 5)],
        [Fraction(1), Fraction(0)],
    ] * 2
    given = Head(given.gates, False, given.betas, keys)

    def column(row: Any) -> Any:
        return numbers.matrix([[x] for x in row])

    k, alpha = [column(row) for row in keys], [column(row) for row in given.gates]
    v = [column([int(i == j) for i in range(6)]) for j in range(6)]
    beta, zero = [numbers.number(x) for x in given.betas], numbers.zeros(2, 6)
    _, state = recurrence(numbers, k, k, v, alpha, beta, scale=numbers.number(1), state=zero)
    held = [[Fraction(str(x)) for x in row] for row in numbers.to_lists(state)]
    (part,) = claim("six", given).parts()
    for row in part.obligations[0].data["rows"]:
        j = row["token"] - 1
        share = sum(keys[j][c] * held[c][j] for c in range(2))
        low, high = map(Fraction, row["share"])
        assert low <= share <= high
        assert high - low < Fraction(1, 10**9)


@pytest.mark.parametrize("logarithms", [False, True])
@pytest.mark.parametrize(("tokens", "width"), [(1, 1), (5, 3), (90, 2)])
def test_the_checker_agrees_and_notices_planted_falsehoods(tokens: int, width: int, logarithms: bool) -> None:
    made = claim("some", head(tokens, width, logarithms))
    (part,) = made.parts()
    (check,) = ask("verify.checkers", part.obligations[0])
    assert check.verdict is Verdict.PROVED, check.detail
    for mutant in made.mutants:
        (item,) = mutant.obligations()
        assert ask("verify.checkers", item)[0].verdict is Verdict.REFUTED, mutant.name


def request(folder: Path, gates: str, **options: Any) -> int:
    given = {
        "log": False,
        "betas": "",
        "keys": "",
        "token": None,
        "json_output": False,
        "name": "r",
        **options,
    }
    return retention(gates, results=folder / "results", **given)


def test_the_certificate_rechecks_and_a_forged_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert request(tmp_path, "9/10,0.98,1/2,99/100", token=1) == 0
    assert "4851/10000" in capsys.readouterr().out
    path = tmp_path / "results" / "claims" / "request.r.json"
    assert recheck(path).faults == ()
    made = certificate.read(path)
    made["parts"][0]["evidence"][0]["data"]["gates"][1] = ["1"]
    certificate.write(path, made)
    assert any("is recorded, now refuted" in fault for fault in recheck(path).faults)


def test_files_of_gates_strengths_and_keys(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text("[[-0.5, -1], [-2, -0.25]]", encoding="utf-8")
    (tmp_path / "k.csv").write_text("1,2\n3/2,-1\n", encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(["1/2", 2]), encoding="utf-8")
    files = {name: str(tmp_path / file) for name, file in (("keys", "k.csv"), ("betas", "b.json"))}
    assert request(tmp_path, str(tmp_path / "g.json"), log=True, **files) == 0
    made = certificate.read(tmp_path / "results" / "claims" / "request.r.json")
    assert made["verdict"] == "proved"
    assert made["reached"] == "B"


@pytest.mark.parametrize(
    ("gates", "options", "said"),
    [
        ("0.5,1.5", {}, "gate 3/2 of token 2: α must be in"),
        ("0.5,-0.5", {}, "give --log for gates"),
        ("0.5", {"log": True}, "g must be at most 0"),
        ("0.5,nan", {}, "gates: 'nan' is not a rational number"),
        ("0.5,,1", {}, "gates: '' is not a rational number"),
        ("0.5,1", {"betas": "1"}, "1 strengths for 2 gates"),
        ("0.5,1", {"betas": "1,3"}, "β = 3 of token 2"),
        ("0.5,1", {"token": 3}, "there is no token 3; the history has 2"),
        ("0.5,1", {"token": 0}, "there is no token 0"),
        ("0.5,1", {"keys": "none.json"}, "none.json cannot be read"),
        ("none.json", {}, "none.json cannot be read"),
    ],
)
def test_wrong_requests_are_one_sentence_and_write_nothing(
    tmp_path: Path, gates: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RequestError) as problem:
        request(tmp_path, gates, **options)
    assert said in str(problem.value)
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([[1, 0]], "1 keys for 2 gates"),
        ([[1, 0], [0, 0]], "key 2 is 0"),
        ([[1, 0, 0], [0, 1, 0]], "keys have 3 channels, gates 2"),
    ],
)
def test_keys_that_do_not_fit(tmp_path: Path, keys: Any, said: str) -> None:
    (tmp_path / "g.json").write_text("[[0.5, 1], [1, 1]]", encoding="utf-8")
    (tmp_path / "k.json").write_text(json.dumps(keys), encoding="utf-8")
    with pytest.raises(RequestError, match=said):
        request(tmp_path, str(tmp_path / "g.json"), keys=str(tmp_path / "k.json"))


def test_decays_beyond_any_float_are_bounded(tmp_path: Path) -> None:
    """2000 gates of g = −300: e^−599700 lies below what is told."""
    (tmp_path / "g.json").write_text(json.dumps([-300] * 2000), encoding="utf-8")
    assert request(tmp_path, str(tmp_path / "g.json"), log=True, token=1) == 0


def test_many_values_and_strengths_in_rows(tmp_path: Path) -> None:
    assert request(tmp_path, ",".join(["1/2"] * 400), token=400) == 0
    (tmp_path / "b.json").write_text("[[1, 2]]", encoding="utf-8")
    with pytest.raises(RequestError, match="one number per token, not rows of 2"):
        request(tmp_path, "0.5,1", betas=str(tmp_path / "b.json"))


def test_gates_given_as_numbers_name_their_certificate_by_what_they_are(tmp_path: Path) -> None:
    for gates in ("9/10,1/2", "9/10,1/3", "9/10,1/2"):
        assert retention(gates=gates, results=tmp_path) == 0
    names = [path.name for path in (tmp_path / "claims").iterdir()]
    assert len(names) == 2
    assert all(name.startswith("request.retention-") for name in names)
