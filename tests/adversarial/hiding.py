"""Inputs on which a broken kernel is right."""

import numpy as np
from fault import Inputs

from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.inputs.probes import probe


def of(tokens: int, dtype: str = "float32", **options: object) -> Inputs:
    return lambda convention: probe(convention, dtype, tokens, **options)  # type: ignore[arg-type]


def reset_inside_a_block(convention: Convention) -> Case:
    """A reset on another row than the first of a block of 16."""
    case = probe(convention, "float32", 40)
    gates = np.array(case.g)
    gates[:, 21] = -1000.0
    return case.replace(g=gates)


def orthogonal_keys(convention: Convention) -> Case:
    return probe(convention, "float32", 8).replace(k=np.eye(8)[None, :, None, :])


def long_keys(convention: Convention) -> Case:
    """Queries and keys beside which no ε counts."""
    case = probe(convention, "float32", 20)
    return case.replace(q=2.0**10 * case.q, k=2.0**10 * case.k)


def small_integers(convention: Convention) -> Case:
    """Every state is a matrix of small integers, which bfloat16 holds."""
    shape = Shape(B=1, T=9, H=1, HV=2, K=4, V=4)
    return draw_integer_case(
        convention.mechanism, shape, dtype="float32", seed=3, with_state=True, resets=False
    )
