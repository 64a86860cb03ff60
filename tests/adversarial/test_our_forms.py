"""Every form of this project's kernels at every kind of chunk size: outputs, states, gradients, packing."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from verify.audit.bench import Bench
from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.inputs.probes import probe
from verify.audit.judge import judge
from verify.audit.laboratory import Laboratory
from verify.audit.mechanism import MECHANISMS
from verify.audit.properties import invariances
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target

TOKENS = 19
RUNS = 12
"""Fewer runs of the model than a certificate has; its quantile allows for that."""
CHUNKS = {"float32": (1, 2, 3, 16, 17, TOKENS, 64), "bfloat16": (3, 16)}
# These share their code, with one another or with the rows they are variants of.
FEWER = {"mamba2": (1, 3, 16, 64), "dplr": (1, 3, 16, 64), "gdn2": (1, 3, 16, 64)}
FEWEST = (3, 64)
OPTION = {
    "chunked": "chunk_size",
    "tiled": "tile_size",
    "triton_chunked": "chunk_size",
    "triton": "tile_size",
}
FORMS = [
    (f"{form}_{kind.room or mechanism}", mechanism)
    for mechanism, kind in MECHANISMS.items()
    if mechanism != "simple_gla"  # The kernels of mamba2, with a scale.
    for form in ("reference", "recurrent", "tiled" if kind.weights == "softmax" else "chunked")
]
PLANS = [
    (form, mechanism, dtype, chunk)
    for form, mechanism in FORMS
    for dtype, chunks in CHUNKS.items()
    for chunk in (
        [c for c in chunks if c in FEWER.get(mechanism, FEWEST if MECHANISMS[mechanism].room else chunks)]
        if form.rpartition("_")[0] in OPTION
        else (None,)
    )
]
# Triton's interpreter computes bfloat16 wrongly, and takes long.
TRITON_CHUNKS = {"float32": (3, 16, 64), "float16": (16,)}
TRITON_PLANS = [
    (f"{form}_{mechanism}", mechanism, dtype, chunk)
    for mechanism in ("softmax", "delta", "gdn", "kda")
    for form in (("triton",) if mechanism == "softmax" else ("triton_recurrent", "triton_chunked"))
    for dtype, chunks in TRITON_CHUNKS.items()
    for chunk in ((None,) if form == "triton_recurrent" else chunks)
    if form != "triton" or chunk != 3  # No tile is narrower than a tensor-core product.
]


def names(plans: list[tuple[str, str, str, int | None]]) -> list[str]:
    return [
        f"{form.rpartition('_')[0]}_{mechanism}-{dtype}" + (f"-{chunk}" if chunk else "")
        for form, mechanism, dtype, chunk in plans
    ]


def convention(form: str, mechanism: str, chunk: int | None) -> Convention:
    loaded = Convention.load("ours", mechanism, form)
    extra = {**loaded.extra, "form": form}
    if chunk is None:
        # Tiles of 16 stand for one tile of all keys, and keep the packed sequences short.
        tile = None if loaded.chunk_size is None else 16
        return dataclasses.replace(loaded, extra=extra, chunk_size=tile)
    extra[OPTION[form.rpartition("_")[0]]] = chunk
    return dataclasses.replace(loaded, extra=extra, chunk_size=chunk)


@pytest.fixture(scope="module")
def ours() -> Iterator[Subject]:
    target = Target.parse(f"{Path(__file__).with_name('our_forms.py')}:call")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        with Subject(target, convention(*FORMS[0], None)) as running:
            yield running


def nearly_equal_keys(of: Convention, dtype: str) -> Case:
    """Where an inverse is badly conditioned and a gate's errors repeat: one key, one gate."""
    key = np.array([0.5, -0.5, 0.5, 0.5])
    return probe(of, dtype, TOKENS, seed=2, key=key, gate=-0.01, beta=0.9, initial_state=True, size=4)


def is_certified(ours: Subject, cache: Path, chosen: Convention, mechanism: str, dtype: str) -> None:
    """Assert what a certificate says of outputs, states, gradients and packed sequences."""
    ours.convention = chosen
    lab = Laboratory(ours, Bench(chosen, len(PLANS), cache, runs=RUNS), dtype)
    shape = Shape(B=2, T=TOKENS, H=1, HV=2, K=4, V=3)
    kind = MECHANISMS[mechanism]
    whole = draw_integer_case(
        mechanism, shape, dtype=dtype, seed=1, with_state=kind.stateful, resets=bool(kind.gate)
    )
    random = probe(chosen, dtype, TOKENS, seed=1, initial_state=True, grouped=True, size=4)
    for case in (whole, random, nearly_equal_keys(chosen, dtype)):
        judged = lab.judge(case)
        assert judged.verdict == "sampled", judged.cell()
        assert (judged.state is not None) == kind.stateful
    if chosen.gradients != "none":
        for case in (random, nearly_equal_keys(chosen, dtype)):
            gradients = lab.judge_gradients(case)
            assert gradients.verdict == "sampled", gradients.entry()
            assert set(gradients.measures) == {*case.arrays(), *(["sink"] if kind.sink is not None else [])}
    if chosen.cu_seqlens and chosen.chunk_size in (None, 3, 16):
        assert invariances.packed_sequences(lab).verdict == "sampled"


@pytest.mark.parametrize(("form", "mechanism", "dtype", "chunk"), PLANS, ids=names(PLANS))
def test_every_form_is_certified(
    ours: Subject, cache: Path, form: str, mechanism: str, dtype: str, chunk: int | None
) -> None:
    is_certified(ours, cache, convention(form, mechanism, chunk), mechanism, dtype)


@pytest.mark.peers
@pytest.mark.parametrize(("form", "mechanism", "dtype", "chunk"), TRITON_PLANS, ids=names(TRITON_PLANS))
def test_every_triton_form_is_certified(
    ours: Subject, cache: Path, form: str, mechanism: str, dtype: str, chunk: int | None
) -> None:
    chosen = convention(form, mechanism, chunk)
    assert chosen.gradients == "output-and-state"
    is_certified(ours, cache, chosen, mechanism, dtype)


@pytest.mark.parametrize("form", ["chunked_kda", pytest.param("triton_chunked_kda", marks=pytest.mark.peers)])
def test_a_form_that_is_told_another_scale_is_not_certified(ours: Subject, cache: Path, form: str) -> None:
    ours.convention = chosen = convention(form, "kda", 16)
    lab = Laboratory(ours, Bench(chosen, len(PLANS), cache, runs=RUNS), "float32")
    case = probe(chosen, "float32", TOKENS, seed=1, initial_state=True, size=4)
    yardstick = lab.bench.yardstick(case.replace(scale=case.scale * (1 + 2.0**-12)))
    assert judge(case, lab.run(case), yardstick).failed
