"""Chunkwise against recurrent form of KDA, GDN, the delta rule and linear attention, on exact numbers.

Data: ``queries``, ``keys`` (T×K), ``values`` (T×V), ``initial`` (K×V), ``erases`` (true for S ← S + βk(v −
Sᵀk)ᵀ after the decay, false for linear attention's S ← S + kvᵀ), and the stated ``outputs`` (T×V) and
``final`` state for each entry of ``chunks`` (a list of ``{"size", "outputs", "final"}``). Decays:
``decays`` (T×K); GDN has equal entries in a row, the delta rule and linear attention have ones.
``strengths``: T numbers β.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Vector, Wrong, dot, matrix, natural, same, transpose, vector, word
from verify.model.evidence import Check, Obligation

NAME = "chunk replay"
KINDS = frozenset({"chunk-agreement"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated chunkwise result, and every replayed one, is the recurrence's."""
    return word(NAME, obligation, _agreement)


class _Tokens:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self.queries, self.keys, self.values, self.decays = (
            matrix(data[name]) for name in ("queries", "keys", "values", "decays")
        )
        self.strengths = vector(data["strengths"])
        self.initial = matrix(data["initial"])
        self.erases = data["erases"]
        lengths = {len(part) for part in (self.queries, self.keys, self.values, self.decays, self.strengths)}
        widths = {len(part[0]) for part in (self.queries, self.keys, self.decays)} | {len(self.initial)}
        if len(lengths) != 1 or len(widths) != 1 or len(self.initial[0]) != len(self.values[0]):
            raise Wrong("the numbers of tokens or the widths do not fit together")
        if not isinstance(self.erases, bool):
            raise Wrong("erases must be true or false")


def _agreement(data: Mapping[str, Any]) -> str:
    tokens = _Tokens(data)
    outputs, final = _recurrent(tokens)
    sizes = []
    for chunk in data["chunks"]:
        size = natural(chunk["size"])
        if size == 0:
            raise Wrong("a chunk holds at least one token")
        same(
            f"the recurrence against the stated outputs in chunks of {size}",
            outputs,
            matrix(chunk["outputs"]),
        )
        same(
            f"the recurrence against the stated final state in chunks of {size}",
            final,
            matrix(chunk["final"]),
        )
        replayed, state = _chunkwise(tokens, size)
        same(f"the replayed outputs in chunks of {size}", replayed, outputs)
        same(f"the replayed final state in chunks of {size}", state, final)
        sizes.append(str(size))
    if not sizes:
        raise Wrong("no chunk size is stated")
    return f"{len(outputs)} tokens, chunks of {', '.join(sizes)}: all equal to the recurrence"


def _recurrent(tokens: _Tokens) -> tuple[Matrix, Matrix]:
    state = [list(row) for row in tokens.initial]
    outputs = []
    for t, (query, key, value) in enumerate(zip(tokens.queries, tokens.keys, tokens.values, strict=True)):
        state = [[decay * x for x in row] for decay, row in zip(tokens.decays[t], state, strict=True)]
        added = value
        if tokens.erases:
            held = [dot(key, column) for column in transpose(state)]
            added = [tokens.strengths[t] * (new - old) for new, old in zip(value, held, strict=True)]
        state = [
            [x + k * u for x, u in zip(row, added, strict=True)] for row, k in zip(state, key, strict=True)
        ]
        outputs.append([dot(query, column) for column in transpose(state)])
    return outputs, state


def _decay(tokens: _Tokens, after: int, upto: int) -> Vector:
    """Product of the decays of tokens after+1 … upto, per channel."""
    product = [Fraction(1)] * len(tokens.initial)
    for t in range(after + 1, upto + 1):
        product = [x * y for x, y in zip(product, tokens.decays[t], strict=True)]
    return product


def _weighted(left: Vector, decay: Vector, right: Vector) -> Fraction:
    return sum((x * g * y for x, g, y in zip(left, decay, right, strict=True)), Fraction(0))


def _chunkwise(tokens: _Tokens, size: int) -> tuple[Matrix, Matrix]:
    state, outputs = tokens.initial, []
    for start in range(0, len(tokens.keys), size):
        inside = range(start, min(start + size, len(tokens.keys)))
        written = _written(tokens, state, inside)
        for t in inside:
            outputs.append(_read(tokens, tokens.queries[t], state, written, t, start))
        last = inside[-1]
        whole = _decay(tokens, start - 1, last)
        state = [
            [
                whole[c] * state[c][d]
                + sum(
                    (_decay(tokens, j, last)[c] * tokens.keys[j][c] * written[j][d] for j in inside),
                    Fraction(0),
                )
                for d in range(len(state[0]))
            ]
            for c in range(len(state))
        ]
    return outputs, state


def _read(
    tokens: _Tokens, reader: Vector, state: Matrix, written: dict[int, Vector], upto: int, start: int
) -> Vector:
    """What a vector reads after token ``upto``: the old state decayed, and the chunk's written tokens."""
    old = _decay(tokens, start - 1, upto)
    result = [_weighted(reader, old, column) for column in transpose(state)]
    for j, added in written.items():
        if j <= upto:
            score = _weighted(reader, _decay(tokens, j, upto), tokens.keys[j])
            result = [x + score * u for x, u in zip(result, added, strict=True)]
    return result


def _written(tokens: _Tokens, state: Matrix, inside: range) -> dict[int, Vector]:
    """Forward substitution: u_i = β_i(v_i − what k_i reads just before its write)."""
    written: dict[int, Vector] = {}
    for i in inside:
        added = tokens.values[i]
        if tokens.erases:
            held = _read(tokens, tokens.keys[i], state, written, i, inside.start)
            added = [tokens.strengths[i] * (new - old) for new, old in zip(added, held, strict=True)]
        written[i] = added
    return written
