"""A case is checked when it is made."""

import numpy as np
import pytest

from verify.audit.case import Case, Shape
from verify.model.errors import RequestError

ZEROS = np.zeros


def make(**changes: object) -> Case:
    fields: dict[str, object] = {
        "mechanism": "kda",
        "name": "zeros",
        "seed": 0,
        "dtype": "bfloat16",
        "q": ZEROS((1, 5, 2, 3)),
        "k": ZEROS((1, 5, 2, 3)),
        "v": ZEROS((1, 5, 4, 7)),
        "g": ZEROS((1, 5, 4, 3)),
        "beta": ZEROS((1, 5, 4)),
        "initial_state": None,
        "scale": 1.0,
    }
    return Case(**(fields | changes))  # type: ignore[arg-type]


def test_a_mechanism_takes_its_own_arrays_only() -> None:
    """Delta has no gate, linear no gate and no beta, softmax no state; its keys and values are shared."""
    nothing = {"g": None, "beta": None}
    assert make(mechanism="delta", g=None).log_decay.shape == (1, 5, 4, 1)
    assert (make(mechanism="linear", **nothing).strength == 1).all()
    lent = {"q": ZEROS((1, 5, 4, 3)), "v": ZEROS((1, 5, 2, 7)), **nothing}
    softmax = make(mechanism="softmax", **lent)
    assert softmax.shape == Shape(B=1, T=5, H=2, HV=4, K=3, V=7)
    assert softmax.spread("v").shape == (1, 5, 4, 7)
    assert make().spread("q").shape == (1, 5, 4, 3)
    for mechanism, changes, message in (
        ("delta", {}, "delta takes no g"),
        ("linear", {"g": None}, "linear takes no beta"),
        ("gdn", {"g": None}, "gdn needs g"),
        ("softmax", {**lent, "initial_state": ZEROS((1, 4, 3, 7))}, "softmax takes no initial_state"),
        ("softmax", nothing, "HV = 2 is not a multiple of H = 4|v has shape|k has shape"),
    ):
        with pytest.raises(RequestError, match=message):
            make(mechanism=mechanism, **changes)


def test_shape_and_gate_dtype() -> None:
    assert make().shape == Shape(B=1, T=5, H=2, HV=4, K=3, V=7)
    assert make().gate_dtype == "float32"
    assert make(dtype="float64").gate_dtype == "float64"
    assert make(gate_dtype="bfloat16").gate_dtype == "bfloat16"


def test_slice_takes_tokens_and_the_given_state() -> None:
    state = np.ones((1, 4, 3, 7))
    part = make(beta=np.arange(20.0).reshape(1, 5, 4)).slice(1, 3, state)
    assert part.shape.T == 2
    assert part.beta.tolist() == [[[4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]]
    assert part.initial_state is state


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "gla"}, "unknown mechanism 'gla'"),
        ({"k": ZEROS((1, 5, 2, 4))}, "k has shape"),
        ({"mechanism": "gdn"}, "g has shape"),
        ({"initial_state": ZEROS((1, 4, 7, 3))}, "initial_state has shape"),
        ({"q": ZEROS((1, 5, 3, 3)), "k": ZEROS((1, 5, 3, 3))}, "HV = 4 is not a multiple of H = 3"),
        ({"q": ZEROS((5, 2, 3))}, "4 axes"),
        ({"v": np.full((1, 5, 4, 7), 0.1)}, "v holds values that are not bfloat16"),
        ({"g": np.full((1, 5, 4, 3), -0.1)}, "g holds values that are not float32"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        make(**changes)


def test_a_replaced_array_is_checked_again() -> None:
    with pytest.raises(RequestError, match="beta"):
        make().replace(beta=np.full((1, 5, 4), 0.1))
