"""``attnproof refute rank`` from outside: certificates, exit codes and one-sentence errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from verify.model import certificate

COMMAND = Path(sys.executable).with_name("attnproof")
EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = {
    "q.csv": "0,1\n1/2,2\n",
    "k.json": '[[1, "1/3"], [0.25, 0], [2, 2]]',
    "narrow.json": "[[1], [2]]",
    "points.json": "[[0], [1], [3]]",
    "half.json": '{"queries": [[1]]}',
    "inf.json": "[[1], [Infinity]]",
    "large.json": json.dumps([[i] for i in range(65)]),
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
    return run("refute", "rank", *words, cwd=cwd)


def test_the_example_of_the_help_works_and_a_forgery_fails(folder: Path) -> None:
    done = refute("--points", str(EXAMPLES / "twelve_tokens.json"), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cited: A softmax matrix of rank 12")
    assert "12 of 12 singular values are above 0, known to at least 32 digits" in done.stdout
    assert "planted falsehoods noticed: 4 of 4" in done.stdout
    table = done.stdout.split("least error of m features:")[1].splitlines()
    assert table[-1].split() == ["11", "0.00000479986", "0.00000479986"]
    assert run("recheck", cwd=folder).returncode == 0
    path = folder / "attnproof-results" / "claims" / "request.rank-twelve-tokens.json"
    data = certificate.read(path)
    data["parts"][0]["evidence"][0]["data"]["floors"][3]["spectral"][0] = "1/2"
    certificate.write(path, data)
    again = run("recheck", cwd=folder)
    assert again.returncode == 1
    assert "the spectral error of 3 features" in again.stdout


def test_queries_and_keys_from_two_files(folder: Path) -> None:
    words = ("--queries", "q.csv", "--keys", "k.json", "--scale", "1/2", "--features", "1", "--json")
    done = refute(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)["parts"][0]["evidence"][0]["data"]
    assert data["keys"] == [["1", "1/3"], ["1/4", "0"], ["2", "2"]]
    assert data["scale"] == "1/2"
    assert len(data["singular_values"]) == 2


def test_one_matrix_serves_as_queries_and_keys(folder: Path) -> None:
    done = refute("--points", "points.json", "--name", "mine", cwd=folder)
    assert done.returncode == 0, done.stderr
    data = certificate.read(folder / "attnproof-results" / "claims" / "request.mine.json")
    found = data["parts"][0]["evidence"][0]["data"]
    assert found["queries"] == found["keys"] == [["0"], ["1"], ["3"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "give either --points FILE, or both --queries FILE and --keys FILE"),
        ("--queries q.csv", "give either --points FILE, or both"),
        ("--points points.json --keys k.json", "give either --points FILE, or both"),
        ("--queries q.csv --keys narrow.json", "queries have 2 coordinates, keys 1"),
        ("--points half.json", 'half.json must hold "queries" and "keys", not queries'),
        ("--points inf.json", "Infinity is not a finite number"),
        ("--points large.json", "65 queries and 65 keys: at most 64"),
        ("--points missing.json", "missing.json cannot be read"),
        ("--points points.json --scale x", "the scale: 'x' is not a rational number"),
        ("--points points.json --features 4", "4 features reproduce a matrix of 3 rows or columns"),
        ("--points points.json --features 0", "Invalid value for '--features'"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(folder: Path, words: str, said: str) -> None:
    done = refute(*words.split(), cwd=folder)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert not (folder / "attnproof-results").exists()
