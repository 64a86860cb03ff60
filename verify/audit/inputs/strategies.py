"""Hypothesis strategies over the input classes, so that a failing case shrinks in a test of one's own.

    from hypothesis import given
    from verify.audit.inputs.strategies import cases

    @given(cases("kda"))
    def test_my_kernel(case):
        judged = judge(case, run_my_kernel(case), bench.yardstick(case))
        assert not judged.failed

Needs the package hypothesis.
"""

from collections.abc import Sequence

from hypothesis import strategies as st

from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.failure.simplify import SIMPLER
from verify.audit.inputs.cells import cell_of, classes
from verify.audit.inputs.integers import KEY_SIZES
from verify.audit.mechanism import named
from verify.model.errors import unknown_name

_SEEDS = 2**32 - 1
_SIZES = (1, 2, 4, 8, 12, 16, 24, 32)


def cases(
    mechanism: str,
    *,
    dtype: str = "float32",
    convention: Convention | None = None,
    names: Sequence[str] | None = None,
    most_tokens: int = 70,
    most_heads: int = 2,
) -> st.SearchStrategy[Case]:
    """Cases of every class of a mechanism; they shrink to one token, one head, few channels, simple numbers.

    Args:
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
        dtype: dtype of q, k and v.
        convention: what the kernel accepts: lengths, heads, a state; None for anything.
        names: the classes to draw from; None for all that say something about the mechanism.
        most_tokens: largest T, raised to the smallest that the convention takes.
        most_heads: largest number of sequences, of heads, and of heads that share what is lent.

    Raises:
        RequestError: no such mechanism, or a class that says nothing about it.
    """
    known = classes(named(mechanism))
    chosen = known if names is None else tuple(names)
    for name in chosen:
        if name not in known:
            raise unknown_name("input class", name, known)
    drawn = _cases(mechanism, dtype, convention, chosen, most_tokens, most_heads)
    return drawn if convention is None else drawn.filter(lambda case: convention.refusal(case) is None)


@st.composite
def _cases(
    draw: st.DrawFn,
    mechanism: str,
    dtype: str,
    convention: Convention | None,
    names: tuple[str, ...],
    most_tokens: int,
    most_heads: int,
) -> Case:
    name = draw(st.sampled_from(names))
    exact = name.startswith("integer")
    multiple = 1 if convention is None else convention.length_multiple
    grouped = convention is None or convention.grouped_heads
    size = 0 if convention is None else convention.head_size
    heads = draw(st.integers(1, most_heads))
    shape = Shape(
        B=draw(st.integers(1, most_heads)),
        T=multiple * draw(st.integers(1, max(1, most_tokens // multiple))),
        H=heads,
        HV=heads * (draw(st.integers(1, most_heads)) if grouped else 1),
        K=size or draw(st.sampled_from(KEY_SIZES if exact else _SIZES)),
        V=size or draw(st.sampled_from(_SIZES)),
    )
    stateful = named(mechanism).stateful and (convention is None or convention.takes_initial_state)
    with_state = stateful and draw(st.booleans())
    case = cell_of(name, mechanism, shape, dtype, with_state, draw(st.integers(0, _SEEDS)))
    # The last is the case as it was drawn; earlier ones are what a failing case shrinks to.
    simpler = draw(st.sampled_from((*SIMPLER, None)))
    return case if exact or simpler is None else simpler(case)
