"""``attnproof refute gated-collision`` from outside: certificates, exit codes and one-sentence errors."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from verify.model import certificate

COMMAND = Path(sys.executable).with_name("attnproof")
EXAMPLES = Path(__file__).parents[3] / "examples"
GDN = {
    "w_q": np.eye(2, 3),
    "w_k": np.eye(2, 3),
    "w_v": np.ones((1, 3)),
    "w_beta": np.ones(3),
    "w_gate": np.ones(3),
}


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    line = [COMMAND, *words]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False, env=environment)


def refute(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run("refute", "gated-collision", *words, cwd=cwd)


def test_the_example_of_the_help_works_and_a_forgery_fails(tmp_path: Path) -> None:
    done = refute("--weights", str(EXAMPLES / "kda_layer.safetensors"), "--tokens", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cited: A KDA head merges two histories of 8 tokens")
    assert "16 equations for the state have exactly one zero" in done.stdout
    assert "planted falsehoods noticed: 3 of 3" in done.stdout
    path = tmp_path / "attnproof-results" / "claims" / "request.gated-collision-kda-layer-8-tokens.json"
    assert run("recheck", cwd=tmp_path).returncode == 0
    data = certificate.read(path)
    witness = data["parts"][0]["evidence"][0]["data"]
    witness["second"][0][0] = "1/8"
    certificate.write(path, certificate.seal({k: v for k, v in data.items() if k != "digest"}))
    again = run("recheck", cwd=tmp_path)
    assert again.returncode == 1
    assert "FAILS" in again.stdout


def test_the_example_layer_is_what_its_script_writes() -> None:
    """The script runs by itself: the examples are no package."""
    code = (
        "import sys, write_kda_layer; from safetensors.numpy import save;"
        " sys.stdout.buffer.write(save(write_kda_layer.layer()))"
    )
    made = subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES, capture_output=True, check=True)
    assert made.stdout == (EXAMPLES / "kda_layer.safetensors").read_bytes()


def test_a_random_head_by_name_and_as_json(tmp_path: Path) -> None:
    words = ("--mechanism", "gdn", "--key-width", "2", "--value-width", "2", "--name", "mine", "--json")
    done = refute(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["id"] == "request.mine"
    assert (tmp_path / "attnproof-results" / "claims" / "request.mine.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--weights", "nan.npz"), "w_v[0, 0]: nan is not a finite number"),
        (("--weights", "missing.npz"), "missing.npz cannot be read: No such file"),
        (("--weights", "nan.npz", "--key-width", "2"), "--key-width with --weights"),
        ((), "no head given"),
        (("--mechanism", "mamba"), "unknown mechanism 'mamba'"),
        (("--mechanism", "kda", "--tokens", "2"), "no collision is forced"),
        (("--mechanism", "kda", "--model-width", "3"), "w_k is singular"),
        (("--mechanism", "kda", "--name", "A b"), "the name 'A b' may hold"),
    ],
)
def test_a_wrong_request_is_one_sentence_code_2_and_no_file(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    np.savez(tmp_path / "nan.npz", **{**GDN, "w_v": np.array([[np.nan, 0, 0]])})
    done = refute(*words, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert said in line
    assert not (tmp_path / "attnproof-results").exists()


def test_a_search_that_ends_is_undecided(tmp_path: Path) -> None:
    words = ("--mechanism", "gdn", "--model-width", "5", "--tokens", "4", "--starts", "1", "--seed", "2")
    done = refute(*words, cwd=tmp_path)
    assert done.returncode == 3, done.stdout
    assert "no collision certified from 1 random starts (seed 2)" in done.stderr
    assert not (tmp_path / "attnproof-results").exists()
