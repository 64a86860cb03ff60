"""Unnormalised linear attention in chunks on exact numbers: o_t = Σ_s [s is seen by t] (q_t·k_s) v_s.

Data: ``queries``, ``keys`` (T×K), ``values`` (T×V), ``chunk`` C >= 1, ``mask`` (whether a token inside its
chunk sees later tokens of that chunk: ``"causal"`` or ``"none"``), ``across`` (whether it sees earlier chunks
only, ``"causal"``, the default, or ``"all"`` other chunks) and the stated ``outputs`` (T×V).
The state of the chunks that are seen is read whole; C = T with ``"causal"`` is the masked score matrix.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Wrong, dot, matrix, natural, same, transpose, word
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
    across = data.get("across", "causal")
    if across not in ("causal", "all"):
        raise Wrong("across must be causal or all")
    found = []
    for start in range(0, len(keys), chunk):
        inside = range(start, min(start + chunk, len(keys)))
        others = range(start) if across == "causal" else [s for s in range(len(keys)) if s not in inside]
        state = _state(keys, values, others)
        for t in inside:
            output = [dot(queries[t], column) for column in transpose(state)]
            for s in inside:
                if s <= t or data["mask"] == "none":
                    score = dot(queries[t], keys[s])
                    output = [x + score * v for x, v in zip(output, values[s], strict=True)]
            found.append(output)
    same("the output", found, matrix(data["outputs"]))
    return f"{len(keys)} tokens in chunks of {chunk} ({data['mask']} mask), outputs as stated"


def _state(keys: Matrix, values: Matrix, seen: Iterable[int]) -> Matrix:
    """Σ_s k_s v_sᵀ over the tokens seen, K×V."""
    state: Matrix = [[Fraction(0)] * len(values[0]) for _ in keys[0]]
    for s in seen:
        state = [
            [x + k * v for x, v in zip(row, values[s], strict=True)]
            for row, k in zip(state, keys[s], strict=True)
        ]
    return state
