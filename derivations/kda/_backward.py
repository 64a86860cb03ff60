"""The backward pass of KDA by its adjoint recurrence, over any number system, and run on literal tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from derivations.kda import definition
from verify.model.evidence import Obligation
from verify.numbers.protocol import M, NumberSystem, S

KEYS = ((1, 2), (-1, 1), (0, 3), (2, -1), (1, 1))
QUERIES = ((1, 0), (2, 1), (-1, 3), (0, 1), (1, -2))
VALUES = ((2, 0, 1), (1, -1, 0), (0, 3, 1), (-1, 2, 2), (4, 1, -1))
DECAYS = (("1/2", "1"), ("1/3", "2/3"), ("1", "1/5"), ("3/4", "1/7"), ("2/3", "1/2"))
STRENGTHS = ("1/2", "1", "2", "0", "-1")
INITIAL = ((1, -2, 1), (3, 1, 0))
OUTPUTS = ((1, 2, 0), (-1, 1, 1), (0, 1, 3), (2, -1, 1), (1, 1, -2))
FINAL = ((1, 0, 2), (-1, 3, 1))


@dataclass(frozen=True)
class Gradients(Generic[S, M]):
    """Gradients of a token's inputs (K×1, K×1, V×1, K×1, scalar) and of the state K×V before it."""

    q: M
    k: M
    v: M
    g: M
    beta: S
    state: M


def step(
    numbers: NumberSystem[S, M],
    before: M,
    q: M,
    k: M,
    v: M,
    alpha: M,
    beta: S,
    *,
    adjoint: M,
    output: M,
) -> Gradients[S, M]:
    """One token of claim kda.adjoint: ``before`` is S_{t−1}, ``adjoint`` is S̄_t, ``output`` is ō_t.

    q, k, alpha: K×1; v, output: V×1; before, adjoint: K×V; a scale is part of q.
    """
    decayed = numbers.scale_rows(alpha, before)
    missed = numbers.sub(v, numbers.matmul(numbers.transpose(decayed), k))
    written = numbers.scale(beta, missed)
    state = numbers.add(decayed, numbers.outer(k, written))
    whole = numbers.add(adjoint, numbers.outer(q, output))
    wrote = numbers.matmul(numbers.transpose(whole), k)
    value = numbers.scale(beta, wrote)
    carried = numbers.sub(whole, numbers.outer(k, value))
    rows = zip(numbers.row_vectors(carried), numbers.row_vectors(decayed), strict=True)
    return Gradients(
        q=numbers.matmul(state, output),
        k=numbers.sub(numbers.matmul(whole, written), numbers.matmul(decayed, value)),
        v=value,
        g=numbers.stack_rows([numbers.matmul(numbers.transpose(one), other) for one, other in rows]),
        beta=numbers.entry(numbers.matmul(numbers.transpose(wrote), missed), 0, 0),
        state=numbers.scale_rows(alpha, carried),
    )


def backward(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[M],
    beta: Sequence[S],
    *,
    state: M,
    outputs: Sequence[M],
    final: M,
) -> list[Gradients[S, M]]:
    """Gradients of Σ_t ō_t·o_t + ⟨final, S_T⟩ for the recurrence of ``definition.py``, token by token.

    The first entry's ``state`` is the gradient of the initial state. Shapes as in :func:`step`; ``outputs``
    holds the ō_t.
    """
    tokens = list(zip(q, k, v, alpha, beta, strict=True))
    states = [state]
    for token in tokens:
        states.append(definition.step(numbers, states[-1], *token, numbers.number(1))[0])
    found: list[Gradients[S, M]] = []
    adjoint = final
    for before, token, output in zip(states[-2::-1], tokens[::-1], outputs[::-1], strict=True):
        found.insert(0, step(numbers, before, *token, adjoint=adjoint, output=output))
        adjoint = found[0].state
    return found


def in_numbers(late: str = "") -> Obligation:
    """The recurrence's gradients on literal tokens, for the checker to compare with dual numbers.

    With ``late`` the named gradient is given one token late (a fault, for a mutant).
    """
    from verify.numbers.exact import Exact

    numbers = Exact()
    point: dict[str, Any] = {"queries": QUERIES, "keys": KEYS, "values": VALUES, "decays": DECAYS}
    q, k, v, alpha = (numbers.row_vectors(numbers.matrix(rows)) for rows in point.values())
    found = backward(
        numbers,
        q,
        k,
        v,
        alpha,
        [numbers.number(beta) for beta in STRENGTHS],
        state=numbers.matrix(INITIAL),
        outputs=numbers.row_vectors(numbers.matrix(OUTPUTS)),
        final=numbers.matrix(FINAL),
    )

    def texts(matrix: Any) -> list[list[str]]:
        return [[str(entry) for entry in row] for row in numbers.to_lists(matrix)]

    fields = {"queries": "q", "keys": "k", "values": "v", "decays": "g"}
    gradients: dict[str, Any] = {
        name: texts(numbers.stack_rows([getattr(token, field) for token in found]))
        for name, field in fields.items()
    }
    gradients["strengths"] = [str(token.beta) for token in found]
    gradients["initial"] = texts(found[0].state)
    if late:
        gradients[late] = gradients[late][-1:] + gradients[late][:-1]
    data = {
        **point,
        "strengths": STRENGTHS,
        "initial": INITIAL,
        "outputs": OUTPUTS,
        "final": FINAL,
        "gradients": gradients,
    }
    return Obligation("adjoint", "5 tokens, every single input, against dual numbers", "E", data)
