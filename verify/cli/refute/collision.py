"""``attnproof refute collision``: two histories that a user's features merge and softmax tells apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verify.cli.options import RESULTS, AsJson, Results

if TYPE_CHECKING:
    from counterexamples.collision._features import Features
    from verify.cli.refute.exact_input import Matrix

Spec = Annotated[
    str,
    typer.Option(
        metavar="SPEC",
        help="A T×m matrix (JSON or CSV file), or a map from a key to its m features: module:function or"
        " file.py:function.",
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option(help="T×K matrix of distinct keys, JSON or CSV; by default keys in [−1, 1] are made up."),
]


def collision(
    features: Spec,
    dim: Annotated[int | None, typer.Option(min=1, help="K, the width of the keys.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="T, the number of tokens.")] = None,
    width: Annotated[int, typer.Option(min=1, help="V, the width of the values.")] = 1,
    keys: Keys = None,
    results: Results = RESULTS,
    json_output: AsJson = False,
    name: Annotated[str, typer.Option(help="Name of the certificate, request.NAME.")] = "",
) -> int:
    """Two histories with one state, and one normaliser, that softmax tells apart; for your own features.

    A feature map takes a key, a list of K numbers, and returns m numbers. It may compute on fractions, with
    SymPy's functions, or on balls with methods such as x.exp(), x.log(), x.sqrt(), x.tanh() and comparisons;
    these are tried in this order. Rational features give an exact collision, others one that certainly
    exists in the stated enclosures. T must exceed m, unless the features of the tokens happen to depend on
    one another. Numbers are integers, decimals or text such as "1/3".

    Example: attnproof refute collision --features examples/feature_maps.py:elu --dim 8 --tokens 9
    """
    from counterexamples.collision._request import claim
    from verify.cli.refute import answers

    found, used, what, stem = _features(features, dim, tokens, keys)
    given: dict[str, Any] = {
        "features": what,
        "keys": [[str(x) for x in key] for key in used],
        "width": width,
        "matrix": None if found.rational is None else [[str(x) for x in row] for row in found.rational],
    }
    made = claim(answers.certificate_name(name, "collision", stem), what, found, used, width)
    return answers.finish(made, given, results, json_output)


def _features(
    spec: str, dim: int | None, tokens: int | None, keys: Path | None
) -> "tuple[Features, Matrix, str, str]":
    """The features, the keys, and both as words for sentences and for a name."""
    from counterexamples.collision._features import exactly
    from counterexamples.collision._query import spread
    from verify.cli.refute import exact_input, feature_map
    from verify.model.errors import RequestError

    used = exact_input.matrix(exact_input.load(keys), f"the keys in {keys}") if keys else []
    if used and dim not in (None, len(used[0])):
        raise RequestError(f"--dim {dim} and keys of width {len(used[0])} in {keys} disagree; leave one out")
    if used and tokens not in (None, len(used)):
        raise RequestError(f"--tokens {tokens} and {len(used)} keys in {keys} disagree; leave one out")
    if Path(spec).suffix in (".json", ".csv"):
        path = Path(spec)
        rows = exact_input.matrix(exact_input.load(path), f"the features in {path}")
        if tokens not in (None, len(rows)) or (used and len(used) != len(rows)):
            asked = f"{len(used)} keys" if used else f"--tokens {tokens}"
            raise RequestError(
                f"{path} has features of {len(rows)} tokens (one per row), which {asked} denies"
            )
        return exactly("given exactly", rows), used or spread(len(rows), dim or 1), str(path), path.stem
    function = feature_map.load(spec)
    if not used:
        if dim is None or tokens is None:
            raise RequestError(f"{spec} needs keys: give --dim K and --tokens T, or --keys FILE")
        used = spread(tokens, dim)
    from counterexamples.collision._feature_map import of_function

    return of_function(function, spec, used), used, spec, spec.rsplit("/", 1)[-1].replace(".py:", "-")
