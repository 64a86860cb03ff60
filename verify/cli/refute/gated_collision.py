"""``attnproof refute gated-collision``: two histories with one state of a GDN or KDA head."""

from pathlib import Path
from typing import Annotated

import typer

from verify.cli.options import RESULTS, AsJson, Results


def gated_collision(
    mechanism: Annotated[
        str, typer.Option(help="gdn or kda; with --weights, the shape of w_gate tells.", metavar="gdn|kda")
    ] = "",
    weights: Annotated[Path | None, typer.Option(help="The head: a .safetensors or .npz file.")] = None,
    key_width: Annotated[int | None, typer.Option(min=1, help="K of a random head.  [default: 4]")] = None,
    value_width: Annotated[int | None, typer.Option(min=1, help="V of a random head.  [default: 4]")] = None,
    model_width: Annotated[
        int | None, typer.Option(min=1, help="D of a random head.  [default: K + V]")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(help="Tokens T of each history.  [default: enough for twice the numbers of the state]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random head and of the histories tried.")] = 0,
    starts: Annotated[int, typer.Option(min=1, help="Random starts of Newton's method to try.")] = 20,
    results: Results = RESULTS,
    json_output: AsJson = False,
    name: Annotated[str, typer.Option(help="Name of the certificate, request.NAME.")] = "",
) -> int:
    """Find two token histories that a GDN or KDA head merges into one state.

    Newton's method finds the second history, an interval test (Krawczyk's) proves that it exists, and softmax
    attention with the same q, k, v certainly tells the two apart. A head is given by arrays, of which x is a
    token in R^D: w_q, w_k [K, D], w_v [V, D], w_beta [D], w_gate [D] for GDN or [K, D] for KDA, and
    optionally A_log (one number) and dt_bias (one number for GDN, [K] for KDA):
    q and k are w x / sqrt(|w x|^2 + 1e-6), v = w_v x, beta = sigmoid(w_beta x),
    ln alpha = -exp(A_log) softplus(w_gate x + dt_bias). Floats count as the binary fractions they are.
    Example: attnproof refute gated-collision --weights examples/kda_layer.safetensors --tokens 8
    """
    from counterexamples.collision import _gated_layer, _gated_newton, _gated_pair
    from verify.cli.refute import answers, layer_file
    from verify.model.errors import RequestError, unknown_name

    if mechanism not in ("", "gdn", "kda"):
        raise unknown_name("mechanism", mechanism, ("gdn", "kda"))
    if weights is not None:
        sizes = {"key": key_width, "value": value_width, "model": model_width}
        if any(given is not None for given in sizes.values()):
            said = ", ".join(f"--{size}-width" for size, given in sizes.items() if given is not None)
            raise RequestError(f"{said} with --weights: the file has its own sizes; leave one of them out")
        layer = _gated_layer.read(layer_file.load(weights), mechanism or None)
    elif mechanism:
        keys, values = key_width or 4, value_width or 4
        layer = _gated_layer.drawn(mechanism, keys, values, model_width or keys + values, seed)
    else:
        raise RequestError("no head given; use --mechanism gdn, --mechanism kda or --weights FILE")
    keys, values, width = layer.sizes
    count = _gated_newton.plenty(layer) if tokens is None else tokens
    stem = weights.stem if weights else f"{layer.mechanism}-{keys}-{values}-{width}"
    called = answers.certificate_name(name, "gated-collision", stem, f"{count}-tokens")
    made = _gated_pair.claim(called, _gated_newton.search(layer, count, seed, starts))
    given = {"layer": layer.data(), "tokens": count, "seed": seed, "starts": starts}
    return answers.finish(made, given, results, json_output)
