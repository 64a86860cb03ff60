"""Unnormalised linear attention in chunks on exact numbers: o_t = Σ_s [s is seen by t] (q_t·k_s) v_s.

Data: ``queries``, ``keys`` (T×K), ``values`` (T×V), ``chunk`` C >= 1, ``mask`` (whether a token inside its
chunk sees later tokens of that chunk: ``"causal"`` or ``"none"``) and the stated ``outputs`` (T×V).
The state of all earlier chunks is carried forward whole; C = T with ``"causal"`` is the masked score matrix.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Wrong, dot, matrix, natural, product, same, transpose, word
from verify.model.evidence import Check, Obligation

NAME = "linear attention replay"
KINDS = frozenset({"linear-attention"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the outputs are exactly the stated ones."""
    return word(NAME, obligation, _outputs)


def _outputs(data: Mapping[str, Any]) -> str:
    queries, keys, values = (matrix(data[name]) for name in ("queries", "keys", "values"))
    chunk = natural(data["chunk"])
    if not len(queries) == len(keys) == len(values) or chunk == 0 or data["mask"] not in ("causal", "none"):
        raise Wrong("tokens, chunk size or mask do not fit together")
    state: Matrix = [[Fraction(0)] * len(values[0]) for _ in keys[0]]
    found = []
    for start in range(0, len(keys), chunk):
        inside = range(start, min(start + chunk, len(keys)))
        for t in inside:
            output = [dot(queries[t], column) for column in transpose(state)]
            for s in inside:
                if s <= t or data["mask"] == "none":
                    score = dot(queries[t], keys[s])
                    output = [x + score * v for x, v in zip(output, values[s], strict=True)]
            found.append(output)
        written = product(transpose([keys[s] for s in inside]), [values[s] for s in inside])
        state = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(state, written, strict=True)]
    same("the output", found, matrix(data["outputs"]))
    return f"{len(keys)} tokens in chunks of {chunk} ({data['mask']} mask), outputs as stated"
