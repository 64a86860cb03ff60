"""``attnproof refute retention``: what decays leave of earlier tokens."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from verify.cli.options import RESULTS, AsJson, Results

GIVEN = "a JSON or CSV file, or numbers with commas"


def retention(
    gates: Annotated[str, typer.Option(help=f"Decays, a row of channels or one number per token: {GIVEN}.")],
    log: Annotated[bool, typer.Option("--log", help="The gates are g = ln α in place of α.")] = False,
    betas: Annotated[str, typer.Option(help=f"Strengths β, one per token (1 by default): {GIVEN}.")] = "",
    keys: Annotated[str, typer.Option(help="Keys, a row per token, scaled to length 1: a file.")] = "",
    token: Annotated[int | None, typer.Option(help="Only this token, from 1.")] = None,
    results: Results = RESULTS,
    json_output: AsJson = False,
    name: Annotated[str, typer.Option(help="Name of the certificate, request.NAME.")] = "",
) -> int:
    """Certify how little of each token a head with these gates can still hold.

    For every token j the ceiling β_j·Π max α_i over the later tokens i, which no key, value or query lifts,
    and the product of each channel; with keys also what reading the token's own key returns, exactly where
    the decays are rational. Example: attnproof refute retention --gates 9/10,0.98,1/2,99/100 --token 1
    """
    from counterexamples.kda._kept import Head
    from counterexamples.kda._retention import claim, table
    from verify.cli.refute import answers
    from verify.model import digest
    from verify.model.errors import RequestError

    rows = _table(gates, "gates")
    given_betas = _table(betas, "betas") if betas else [[Fraction(1)]] * len(rows)
    if wide := next((row for row in given_betas if len(row) > 1), None):
        raise RequestError(f"betas must be one number per token, not rows of {len(wide)}")
    strengths = [beta for (beta,) in given_betas]
    head = Head(rows, log, strengths, _table(keys, "keys") if keys else None)
    given: dict[str, Any] = {
        "gates": _text(rows),
        "log": log,
        "betas": list(map(str, strengths)),
        "token": token,
        "keys": _text(head.keys) if head.keys else None,
    }
    stem = Path(gates).stem if _is_file(gates) else digest.of_json(given)[:8]
    made = claim(answers.certificate_name(name, "retention", stem), head, token)
    if not json_output:
        print(table(made))
    return answers.finish(made, given, results, json_output)


def _is_file(given: str) -> bool:
    return "," not in given and (Path(given).suffix in (".json", ".csv") or Path(given).is_file())


def _table(given: str, what: str) -> list[list[Fraction]]:
    """A row per token, from a file or from numbers with commas."""
    from verify.cli.refute import exact_input

    value = exact_input.load(Path(given)) if _is_file(given) else given.split(",")
    if isinstance(value, list) and not any(isinstance(item, list) for item in value):
        return [[item] for item in exact_input.vector(value, what)]
    return exact_input.matrix(value, what)


def _text(rows: Any) -> list[list[str]]:
    return [[str(entry) for entry in row] for row in rows]
