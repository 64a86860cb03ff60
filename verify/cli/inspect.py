"""``attnproof list``, ``show`` and ``doctor``: what there is, one claim in full, the installation."""

import importlib.util
import json
import shutil
import sys
from typing import Annotated

import typer

from verify.cli.options import AsJson
from verify.model import coq_build, environment, registry
from verify.model.environment import cache_folder
from verify.model.errors import EnvironmentProblem


def list_claims(json_output: AsJson = False) -> int:
    """List every claim: id, title, and whether it is a derivation or a counterexample."""
    found = registry.entries()
    if json_output:
        rows = [{"id": e.id, "title": e.title, "room": e.room, "path": str(e.path)} for e in found]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    width = max(len(entry.id) for entry in found)
    for room, command in (("derivations", "prove"), ("counterexamples", "refute")):
        print(f"{room} (attnproof {command})")
        for entry in found:
            if entry.room == room:
                print(f"  {entry.id:<{width}} {entry.title}")
    return 0


Id = Annotated[str, typer.Argument(metavar="CLAIM", help="A claim id; see attnproof list.")]


def show(claim_id: Id) -> int:
    """Print one claim in full: statement, hypotheses, every step and who checked it, and its mutants."""
    entry = registry.find(claim_id)
    from verify.prove import certify_claim
    from verify.report import text

    data, _ = certify_claim(entry.id, cache_folder())
    print(text.claim(data, width=shutil.get_terminal_size().columns))
    return 0


def doctor() -> int:
    """Check the installation: engines, peers, name clashes, the registry of claims."""
    lines = [f"python {sys.version.split()[0]}; cache {cache_folder()}"]
    lines += [_package(name, needed) for name, needed in _PACKAGES]
    lines.append(f"{'coq':<24} {_coq() or 'not installed':<16} kernel-checked proofs, optional")
    problems = _problems()
    print("\n".join(lines))
    for problem in problems:
        print(f"problem: {problem}")
    print("all is well" if not problems else f"{len(problems)} problem(s)")
    return 2 if problems else 0


_PACKAGES = (
    ("sympy", "engine of derivations"),
    ("python-flint", "exact and ball arithmetic"),
    ("mpmath", "interval checks"),
    ("z3-solver", "SMT engine"),
    ("cvc5", "SMT engine"),
    ("torch", "kernels and certify"),
    ("transformers", "peer kernels, optional"),
    ("flash-linear-attention", "peer kernels, optional"),
    ("triton", "peer kernels, optional"),
)


def _coq() -> str | None:
    try:
        return coq_build.version()
    except EnvironmentProblem:
        return None


def _package(name: str, needed: str) -> str:
    found = environment.version(name)
    return f"{name:<24} {found or 'not installed':<16} {needed}"


def _problems() -> list[str]:
    problems = [
        f"{name} is not installed ({needed}); run: pip install {name}"
        for name, needed in _PACKAGES
        if "optional" not in needed and environment.version(name) is None
    ]
    if environment.version("kernels"):
        problems.append(
            "Hugging Face's package 'kernels' is installed beside attnproof and has the same import name; "
            "install attnproof in an environment of its own and reach the other one with certify --python"
        )
    if _fla_takes_over():
        print(
            "note: flash-linear-attention is importable, so Transformers' torch_chunk_gated_delta_rule and "
            "its like are fla's Triton kernels; ask for NAME.__wrapped__ to certify the torch code"
        )
    return problems + registry.faults()


def _fla_takes_over() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("fla", "transformers"))
