"""``attnproof refute collision`` from outside: certificates, exit codes and one-sentence errors."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verify.model import certificate

COMMAND = Path(sys.executable).with_name("attnproof")
EXAMPLES = Path(__file__).parents[3] / "examples"
MAPS = """
import math
def square(key): return [1, key[0], key[0] ** 2]
def rounded(key): return [math.exp(x) for x in key]
def broken(key): raise RuntimeError("no table")
def leaves(key): raise SystemExit(0)
def twice(key): return [key[0].exp(), 2 * key[0].exp(), 1]
constant = 3
"""
FILES = {
    "maps.py": MAPS,
    "wrong.py": "import not_there",
    "rows.json": '[[1, 2], [0.5, "1/3"], [0, 1]]',
    "rows.csv": "1,2\n0.5,1/3\n0,1\n",
    "ragged.json": "[[1, 2], [3]]",
    "nan.json": "[[1, NaN], [1, 2]]",
    "text.json": "[[1, 2]",
    "empty.json": " ",
    "object.json": '{"rows": 1}',
    "wide.json": "[[1, 0, 0], [0, 1, 0]]",
    "keys.json": "[[0], [1], [2]]",
    "same.json": "[[0], [1], [0]]",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    line = [COMMAND, *words]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False, env=environment)


def refute(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run("refute", "collision", *words, cwd=cwd)


def witness(folder: Path, name: str) -> Any:
    data = certificate.read(folder / "attnproof-results" / "claims" / f"request.{name}.json")
    return data, data["parts"][0]["evidence"][0]["data"]


def test_the_example_of_the_help_works_and_a_forgery_fails(folder: Path) -> None:
    words = ("--features", str(EXAMPLES / "feature_maps.py:elu"), "--dim", "8", "--tokens", "9")
    done = refute(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("proved: Two histories that 8 features cannot tell apart")
    assert "planted falsehoods noticed: 3 of 3" in done.stdout
    assert run("recheck", cwd=folder).returncode == 0
    data, found = witness(folder, "collision-feature-maps-elu")
    found["gap"] = "1"
    name = f"{data['id']}.json"
    certificate.write(folder / "attnproof-results" / "claims" / name, data)
    again = run("recheck", cwd=folder)
    assert again.returncode == 1
    assert "only certainly" in again.stdout


@pytest.mark.parametrize(
    ("function", "dim", "tokens", "kind"),
    [("quadratic", "2", "7", "state-collision"), ("taylor", "1", "7", "enclosed-collision")],
)
def test_every_example_map_collides(folder: Path, function: str, dim: str, tokens: str, kind: str) -> None:
    spec = str(EXAMPLES / f"feature_maps.py:{function}")
    done = refute("--features", spec, "--dim", dim, "--tokens", tokens, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["parts"][0]["evidence"][0]["kind"] == kind
    assert data["verdict"] == "proved"


def test_a_matrix_is_read_exactly_from_json_and_csv(folder: Path) -> None:
    for name in ("rows.json", "rows.csv"):
        done = refute("--features", name, "--width", "2", "--name", name.replace(".", "-"), cwd=folder)
        assert done.returncode == 0, done.stderr
        _, data = witness(folder, name.replace(".", "-"))
        assert data["first"]["features"] == [["1", "2"], ["1/2", "1/3"], ["0", "1"]]
        assert len(data["first"]["values"][0]) == 2


def test_the_users_keys_are_used(folder: Path) -> None:
    done = refute("--features", "rows.json", "--keys", "keys.json", "--name", "mine", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert witness(folder, "mine")[1]["second"]["keys"] == [["0"], ["1"], ["2"]]
    done = refute("--features", "maps:square", "--keys", "keys.json", "--name", "map", cwd=folder)
    assert done.returncode == 2
    assert "T = 3 tokens and m = 3 features" in done.stderr


def test_sixty_five_tokens_and_sixty_four_features(folder: Path) -> None:
    source = random.Random(1)
    rows = [[source.randint(-9, 9) for _ in range(64)] for _ in range(65)]
    (folder / "large.json").write_text(json.dumps(rows), encoding="utf-8")
    done = refute("--features", "large.json", "--dim", "3", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "65 tokens, 64 features" in json.dumps(witness(folder, "collision-large")[0])


def test_features_that_balls_leave_open_are_undecided(folder: Path) -> None:
    done = refute("--features", "maps.py:twice", "--dim", "1", "--tokens", "4", cwd=folder)
    assert done.returncode == 3
    assert "no 3 of the 4 tokens have certainly independent features at 256, 512" in done.stderr
    assert not (folder / "attnproof-results").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rows.json --tokens 4", "rows.json has features of 3 tokens (one per row), which --tokens 4 denies"),
        ("wide.json", "T = 2 tokens and m = 3 features: no collision is forced while T ≤ m; give at least 4"),
        ("ragged.json", "row 2 of the features in ragged.json has 1 entries, row 1 has 2"),
        ("nan.json", "NaN is not a finite number"),
        ("text.json", "text.json is not JSON"),
        ("empty.json", "empty.json is empty"),
        ("object.json", "must be a non-empty list of rows"),
        ("missing.json", "missing.json cannot be read: No such file"),
        ("rows.json --keys same.json", "tokens 1 and 3 have one key"),
        ("rows.json --keys keys.json --dim 2", "--dim 2 and keys of width 1 in keys.json disagree"),
        ("maps.py:square --keys keys.json --tokens 5", "--tokens 5 and 3 keys in keys.json disagree"),
        ("wide.json --keys keys.json", "features of 2 tokens (one per row), which 3 keys denies"),
        ("maps.py:square", "maps.py:square needs keys: give --dim K and --tokens T"),
        ("maps.py:square --dim 1 --tokens 0", "Invalid value for '--tokens'"),
        ("maps.py:sqare --dim 1 --tokens 4", "unknown function of maps.py 'sqare'; did you mean square"),
        ("maps.py:constant --dim 1 --tokens 4", "maps.py:constant is a int"),
        ("maps.py:rounded --dim 1 --tokens 4", "turns a ball into a float"),
        ("maps.py:broken --dim 1 --tokens 4", "maps.py:broken raises RuntimeError on token 1"),
        ("maps.py:leaves --dim 1 --tokens 4", "maps.py:leaves raises SystemExit on token 1"),
        ("absent.py:f --dim 1 --tokens 4", "absent.py is not a Python file"),
        ("wrong.py:f --dim 1 --tokens 4", "importing wrong.py raises ModuleNotFoundError"),
        ("absent:f --dim 1 --tokens 4", "importing absent raises ModuleNotFoundError"),
        ("maps", "'maps' names no features"),
        ("rows.json --name A", "the name 'A' may hold"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(folder: Path, words: str, said: str) -> None:
    done = refute("--features", *words.split(), cwd=folder)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert not (folder / "attnproof-results").exists()
