"""The backward pass of KDA chunk by chunk by claim chunk.adjoint, in exact rationals, on literal tokens."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from derivations.kda import _backward as tokens
from verify.model.evidence import Obligation

Matrix = Any
"""A matrix of ``verify.numbers.exact``; tokens are rows."""


class Chunk:
    """One chunk of C tokens, run forward: q, k, alpha C×K, v C×V, beta C numbers, state K×V.

    Decays must not be 0 here: x, y and z divide by their products, as the claim's proof does.
    """

    def __init__(self, numbers: Any, inputs: dict[str, Matrix], beta: Sequence[Any], state: Matrix) -> None:
        self.numbers, self.state = numbers, state
        self.k, self.v, self.beta = inputs["keys"], inputs["values"], numbers.matrix([[b] for b in beta])
        rows = numbers.to_lists(inputs["decays"])
        sofar = [rows[0]]
        for row in rows[1:]:
            sofar.append([x * y for x, y in zip(sofar[-1], row, strict=True)])
        self.decay = numbers.matrix(sofar)
        self.whole = numbers.row_vectors(self.decay)[-1]
        self.x, self.z = (self.times(self.decay, inputs[name]) for name in ("keys", "queries"))
        self.y = self.entrywise(operator.truediv, self.k, self.decay)
        self.own = self.masked(self.x * self.y.transpose(), -1)
        self.reads = self.masked(self.z * self.y.transpose(), 0)
        size = len(rows)
        self.system = numbers.eye(size) + numbers.scale_rows(self.beta, self.own)
        wanted = numbers.scale_rows(self.beta, self.v - self.x * state)
        self.u = numbers.solve(self.system, wanted)
        self.end = numbers.scale_rows(self.whole, state + self.y.transpose() * self.u)

    def entrywise(self, function: Callable[[Any, Any], Any], one: Matrix, other: Matrix) -> Matrix:
        """A function of two entries at a time."""
        pairs = zip(self.numbers.to_lists(one), self.numbers.to_lists(other), strict=True)
        return self.numbers.matrix([list(map(function, *pair)) for pair in pairs])

    def times(self, one: Matrix, other: Matrix) -> Matrix:
        """The entrywise product."""
        return self.entrywise(operator.mul, one, other)

    def masked(self, scores: Matrix, diagonal: int) -> Matrix:
        """The entries (t, j) with j ≤ t + diagonal, the others 0."""
        rows = self.numbers.to_lists(scores)
        return self.numbers.matrix(
            [[x if j <= t + diagonal else 0 for j, x in enumerate(row)] for t, row in enumerate(rows)]
        )

    def row_sums(self, one: Matrix, other: Matrix) -> list[Any]:
        """Row sums of the entrywise product."""
        return [sum(row) for row in self.numbers.to_lists(self.times(one, other))]

    def backward(self, outputs: Matrix, final: Matrix, transposed: bool = True) -> dict[str, Any]:
        """Gradients by name of the input; ``transposed`` false solves the wrong system (for a mutant)."""
        numbers, state = self.numbers, self.state
        in_u = self.reads.transpose() * outputs + self.y * numbers.scale_rows(self.whole, final)
        w = numbers.solve(self.system.transpose() if transposed else self.system, in_u)
        v = numbers.scale_rows(self.beta, w)
        missed = self.v - self.x * state - self.own * self.u
        own, reads = self.masked(v * self.u.transpose(), -1), self.masked(outputs * self.u.transpose(), 0)
        x = -(own * self.y) - v * state.transpose()
        y = reads.transpose() * self.z - own.transpose() * self.x
        y = y + (numbers.scale_rows(self.whole, final) * self.u.transpose()).transpose()
        z = reads * self.y + outputs * state.transpose()
        sofar = numbers.to_lists(self.times(x, self.x) - self.times(y, self.y) + self.times(z, self.z))
        sofar[-1] = [a + b for a, b in zip(sofar[-1], self.row_sums(final, self.end), strict=True)]
        for row, later in zip(sofar[-2::-1], sofar[:0:-1], strict=True):
            row[:] = [a + b for a, b in zip(row, later, strict=True)]
        carried = numbers.scale_rows(self.whole, final)
        return {
            "queries": numbers.to_lists(self.times(self.decay, z)),
            "keys": numbers.to_lists(
                self.times(self.decay, x) + self.entrywise(operator.truediv, y, self.decay)
            ),
            "values": numbers.to_lists(v),
            "decays": sofar,
            "strengths": self.row_sums(w, missed),
            "initial": carried + self.z.transpose() * outputs - self.x.transpose() * v,
        }


def in_numbers(size: int, transposed: bool = True) -> Obligation:
    """Gradients of the literal tokens of kda.adjoint in chunks of ``size``, for dual numbers to check."""
    from verify.numbers.exact import Exact

    numbers = Exact()
    point: dict[str, Any] = {
        "queries": tokens.QUERIES,
        "keys": tokens.KEYS,
        "values": tokens.VALUES,
        "decays": tokens.DECAYS,
    }
    state, chunks = numbers.matrix(tokens.INITIAL), []
    for start in range(0, len(tokens.KEYS), size):
        part = slice(start, start + size)
        inputs = {name: numbers.matrix(rows[part]) for name, rows in point.items()}
        chunks.append(Chunk(numbers, inputs, tokens.STRENGTHS[part], state))
        state = chunks[-1].end
    adjoint = numbers.matrix(tokens.FINAL)
    gradients: dict[str, list[Any]] = {name: [] for name in (*point, "strengths")}
    for start, chunk in zip(range(0, len(tokens.KEYS), size)[::-1], chunks[::-1], strict=True):
        outputs = numbers.matrix(tokens.OUTPUTS[start : start + size])
        found = chunk.backward(outputs, adjoint, transposed)
        adjoint = found.pop("initial")
        for name, rows in found.items():
            gradients[name] = [*rows, *gradients[name]]
    texts: dict[str, Any] = {
        name: [[str(x) for x in row] for row in rows] for name, rows in gradients.items() if name in point
    }
    texts["strengths"] = [str(x) for x in gradients["strengths"]]
    texts["initial"] = [[str(x) for x in row] for row in numbers.to_lists(adjoint)]
    data = {
        **point,
        "strengths": tokens.STRENGTHS,
        "initial": tokens.INITIAL,
        "outputs": tokens.OUTPUTS,
        "final": tokens.FINAL,
        "gradients": texts,
    }
    return Obligation("adjoint", f"5 tokens in chunks of {size}, against dual numbers", "E", data)
