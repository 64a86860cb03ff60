"""How far above the errors of our kernels the rigorous bound lies, at sizes that kernels have."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from verify.audit.case import Array, Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.rigorous import worst_case

CLASSES = tuple(
    kind
    for kind in REAL_CLASSES
    if kind.name in ("random", "constant-key-1", "predicted-value", "directions-apart", "gate-strong")
)
SIZES = ((16, 16), (16, 64), (64, 16), (64, 64))
"""K = V, and the rows of a chunk."""


def distances(run: Any) -> Iterator[dict[str, Any]]:
    """Per mechanism with corrections, form and size: the bound over the error, the largest of each, in the
    best and in the worst class. ``run`` gives the output and the state of a case by an algorithm."""
    usual = Algorithm("chunked", 16, "float32", "float32", "float32")
    token_by_token = dataclasses.replace(usual, form="recurrent", chunk_size=None)
    for name, kind in MECHANISMS.items():
        if not (kind.erases or kind.directed):
            continue
        for keys, chunk in SIZES:
            cases = [_drawn(one, name, keys) for one in CLASSES if one.suits(kind)]
            for algorithm in (token_by_token, dataclasses.replace(usual, chunk_size=chunk)):
                if algorithm is token_by_token and chunk != SIZES[0][1]:
                    continue
                found = [_distance(case, algorithm, *run(case, algorithm)) for case in cases]
                yield {
                    "mechanism": name,
                    "form": algorithm.form,
                    "chunk": algorithm.chunk_size,
                    "K": keys,
                    "least": min(found),
                    "most": max(found),
                }


def _drawn(kind: Any, mechanism: str, keys: int) -> Case:
    shape = Shape(B=1, T=64, H=1, HV=2, K=keys, V=keys)
    return draw_case(kind, mechanism, shape, dtype="float32", seed=5, with_state=True)


def _distance(case: Case, algorithm: Algorithm, output: Array, state: Array) -> float:
    reference = float64_reference(case)
    bound = worst_case(case, reference, algorithm)
    error = np.linalg.norm(output - reference.output, axis=-1).max()
    ending = np.linalg.norm(state - reference.final_state, axis=(-1, -2)).max()
    return float(max(bound.output.max() / error, bound.state.max() / ending))


def table(entries: list[dict[str, Any]]) -> list[str]:
    """As lines of Markdown."""
    lines = [
        "## Bound over error",
        "The largest bound over the largest error of our float32 kernels, output or state, over 64 tokens,"
        f" in the best and the worst of the classes {', '.join(kind.name for kind in CLASSES)}.",
        "",
        "| mechanism | K = V | token by token | chunks of 16 | chunks of 64 |",
        "|---|---|---|---|---|",
    ]
    rows: dict[tuple[str, int], dict[int | None, str]] = {}
    for x in entries:
        row = rows.setdefault((x["mechanism"], x["K"]), {})
        row[x["chunk"]] = f"{x['least']:.2g} … {x['most']:.2g}"
    for (name, keys), row in rows.items():
        lines.append(f"| {name} | {keys} | {row[None]} | {row[16]} | {row[64]} |")
    return [*lines, ""]
