"""``attnproof refute representable``: is a matrix one KDA step, or a product of several?"""

from pathlib import Path
from typing import Annotated

import typer

from verify.cli.options import RESULTS, AsJson, Results

LARGEST = 32
"""Channels of the largest matrix that is decided: exact fractions grow with the size."""


def representable(
    matrix: Annotated[Path, typer.Argument(help="JSON or CSV file with a square matrix of exact numbers.")],
    steps: Annotated[int, typer.Option(min=1, help="Allow a product of up to this many KDA steps.")] = 1,
    results: Results = RESULTS,
    json_output: AsJson = False,
    name: Annotated[str, typer.Option(help="Name of the certificate, request.NAME.")] = "",
) -> int:
    """Decide whether a matrix is one KDA step (I − βkkᵀ)Diag(α), or a product of several.

    The answer is (α, β, k), exactly, or entries of the matrix that no step has, both re-checked by
    independent code: with ‖k‖ = 1, β in [0, 2], α in [0, 1], and without these bounds. With --steps N a
    vector that the matrix lengthens rules out every number of steps; otherwise a product is searched for,
    and 2d steps always suffice. Entries are integers, decimals or text such as "1/3"; a matrix is a JSON
    list of rows, or CSV. Example: attnproof refute representable examples/shear.json
    """
    from counterexamples.kda._representable import claim
    from verify.cli.refute import answers, exact_input
    from verify.model.errors import RequestError

    rows = exact_input.matrix(exact_input.load(matrix), "the matrix")
    if len(rows) != len(rows[0]):
        raise RequestError(f"the matrix is {len(rows)}×{len(rows[0])}; a KDA step is square")
    if len(rows) > LARGEST:
        raise RequestError(f"the matrix is {len(rows)}×{len(rows)}; at most {LARGEST}×{LARGEST} is decided")
    given = {"matrix": [[str(entry) for entry in row] for row in rows], "steps": steps}
    made = claim(answers.certificate_name(name, "representable", matrix.stem), rows, steps)
    return answers.finish(made, given, results, json_output)
