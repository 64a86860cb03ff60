"""``attnproof refute rank``: the rank of a user's softmax matrix, and what m features must miss."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verify.cli.options import RESULTS, AsJson, Results

if TYPE_CHECKING:
    from verify.cli.refute.exact_input import Matrix
    from verify.model.claim import Claim

LARGEST = 64
"""Most queries, or keys, whichever are fewer: every singular value takes two eliminations of that size."""


def rank(
    points: Annotated[
        Path | None,
        typer.Option(
            help='JSON object with "queries" and "keys", one row per token; or one matrix (JSON or CSV) whose'
            " rows are both."
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="n×d matrix, JSON or CSV; together with --keys.")
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="n'×d matrix, JSON or CSV.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Speak of kernels of m features only.")] = None,
    scale: Annotated[str, typer.Option(help="Factor of the products q·k, e.g. 1/8.")] = "1",
    results: Results = RESULTS,
    json_output: AsJson = False,
    name: Annotated[str, typer.Option(help="Name of the certificate, request.NAME.")] = "",
) -> int:
    """Certified rank and singular values of your softmax matrix, and the least error of m features.

    The matrix holds e^(scale q·k), every row divided by its sum. Each singular value that is certainly
    above 0 is enclosed to at least 30 digits, and so is the smallest spectral and Frobenius error that any
    kernel of m features makes, for every m. Numbers are integers, decimals or text such as "1/3".

    Example: attnproof refute rank --points examples/twelve_tokens.json
    """
    from counterexamples.rank._request import claim
    from verify.cli.refute import answers, exact_input
    from verify.model.errors import RequestError

    q, k = _points(points, queries, keys)
    factor = exact_input.number(scale, "the scale")
    if len(q[0]) != len(k[0]):
        raise RequestError(f"queries have {len(q[0])} coordinates, keys {len(k[0])}; they must agree")
    size = min(len(q), len(k))
    if size > LARGEST:
        raise RequestError(f"{len(q)} queries and {len(k)} keys: at most {LARGEST} of the fewer are decided")
    if features is not None and features > size:
        raise RequestError(
            f"{features} features reproduce a matrix of {size} rows or columns; give at most {size}"
        )
    stem = (points or queries or Path()).stem
    made = claim(answers.certificate_name(name, "rank", stem), q, k, factor, features)
    given = {
        "queries": [[str(x) for x in row] for row in q],
        "keys": [[str(x) for x in row] for row in k],
        "scale": str(factor),
        "features": features,
    }
    code = answers.finish(made, given, results, json_output)
    if not (code or json_output):
        print(_table(made))
    return code


def _table(claim: "Claim") -> str:
    """The least errors, for every m."""
    from counterexamples.rank._request import below

    (part,) = claim.parts()
    floors = part.obligations[0].data["floors"]
    lines = ["least error of m features:", f"{'m':>4}  {'spectral':>12}  {'Frobenius':>12}"]
    for floor in floors:
        spectral, frobenius = (below(floor[word][0]) for word in ("spectral", "frobenius"))
        lines.append(f"{floor['features']:>4}  {spectral:>12}  {frobenius:>12}")
    return "\n".join(lines)


def _points(points: Path | None, queries: Path | None, keys: Path | None) -> "tuple[Matrix, Matrix]":
    from verify.cli.refute import exact_input
    from verify.model.errors import RequestError

    if points is not None and queries is None and keys is None:
        loaded = exact_input.load(points)
        if not isinstance(loaded, dict):
            both = exact_input.matrix(loaded, f"the points in {points}")
            return both, both
        if set(loaded) != {"queries", "keys"}:
            raise RequestError(
                f'{points} must hold "queries" and "keys", not {", ".join(loaded) or "nothing"}'
            )
        q, k = (exact_input.matrix(loaded[word], f"the {word} in {points}") for word in ("queries", "keys"))
        return q, k
    if points is None and queries is not None and keys is not None:
        q, k = (
            exact_input.matrix(exact_input.load(path), f"the {word} in {path}")
            for path, word in ((queries, "queries"), (keys, "keys"))
        )
        return q, k
    raise RequestError("give either --points FILE, or both --queries FILE and --keys FILE")
