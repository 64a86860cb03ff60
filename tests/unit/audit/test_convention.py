"""Conventions: the presets load, users' files are checked, gates and states are converted."""

import math
from pathlib import Path

import numpy as np
import pytest

from verify.audit.case import Case
from verify.audit.convention import Convention
from verify.audit.convention_file import presets
from verify.audit.mechanism import FORMS
from verify.model.errors import RequestError

RNG = np.random.default_rng(5)


def gdn_case(tokens: int = 3, value_heads: int = 1, scale: float = 0.5, state: bool = False) -> Case:
    gates = -RNG.integers(0, 64, (1, tokens, value_heads)) / 8.0
    return Case(
        mechanism="gdn",
        name="case",
        seed=5,
        dtype="float32",
        q=np.ones((1, tokens, 1, 4)),
        k=np.ones((1, tokens, 1, 4)),
        v=np.ones((1, tokens, value_heads, 2)),
        g=gates,
        beta=np.ones((1, tokens, value_heads)),
        initial_state=np.arange(8.0 * value_heads).reshape(1, value_heads, 4, 2) if state else None,
        scale=scale,
    )


def test_every_preset_loads_for_the_mechanisms_it_serves() -> None:
    assert presets() == ["fla", "ours", "sdpa", "transformers"]
    for name in presets():
        for mechanism in ("softmax",) if name == "sdpa" else ("gdn", "kda"):
            assert Convention.load(name, mechanism).summary


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "delta", "gdn", "kda"])
def test_our_preset_names_every_kernel_of_ours(mechanism: str) -> None:
    forms = {path.stem for path in Path("kernels", mechanism).glob("*.py")}
    for name in (f"{form}_{mechanism}" for form in forms & {"reference", *FORMS}):
        assert Convention.load("ours", mechanism, name).mechanism == mechanism
        with pytest.raises(RequestError, match=f"is a {mechanism} function"):
            Convention.load("ours", "kda" if mechanism != "kda" else "gdn", name)


def test_heads_before_tokens() -> None:
    """The inputs of a head-first function are swapped, its state is not."""
    convention = Convention.load("fla", "delta", "delta_rule_recurrence")
    case = gdn_case(value_heads=1, state=True).replace(mechanism="delta", g=None)
    handed = convention.inputs(case)
    assert handed["q"][0].shape == (1, 1, 3, 4)
    assert handed["beta"][0].shape == (1, 1, 3)
    assert handed["initial_state"][0].shape == (1, 1, 4, 2)
    assert "g" not in handed
    output = np.ones((1, 1, 3, 2))
    assert convention.swap_tokens(output).shape == (1, 3, 1, 2)


def test_a_mechanism_without_state_returns_none() -> None:
    with pytest.raises(RequestError, match="softmax has no state to return"):
        Convention.load("ours", "softmax", "unknown_softmax")
    with pytest.raises(RequestError, match="softmax has no"):
        Convention.load("fla", "softmax")


def test_function_entries_override_and_attribute_paths_are_ignored() -> None:
    chunk = Convention.load("fla", "kda", "fla.ops.kda.naive:naive_chunk_kda")
    assert (chunk.length_multiple, chunk.form, chunk.chunk_size) == (64, "chunked", 64)
    recurrent = Convention.load("transformers", "gdn", "m:torch_recurrent_gated_delta_rule.__wrapped__")
    assert (recurrent.form, recurrent.chunk_size, recurrent.grouped_heads) == ("recurrent", None, True)
    assert not Convention.load("transformers", "kda", "chunk_kimi_delta_attention").grouped_heads


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("flaa", "kda"), "unknown convention 'flaa'; did you mean fla"),
        (("fla", "gla"), "unknown mechanism 'gla'"),
        (("fla", "gdn", "x:naive_chunk_kda"), "naive_chunk_kda is a kda function"),
        (("nowhere.toml", "kda"), "cannot be read"),
    ],
)
def test_unknown_names_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Convention.load(*arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gate_spce = 'ln'", "unknown field 'gate_spce'; did you mean gate_space"),
        ("name = 'x'", "unknown field 'name'"),
        ("gate_space = 'log10'", "must be one of ln, log2, linear"),
        ("grouped_heads = 1", "grouped_heads has a wrong value 1"),
        ("length_multiple = 0", "length_multiple has a wrong value 0"),
        ("positional = ['query']", "unknown field of positional"),
        ("[arguments]\nq = 'query'", "no name for k, v, g, beta"),
        ("scale = 'fixed'", "must not name scale"),
        ("chunk_size = 64", "with chunk_size 64"),
        ("form = 'chunked'", "with chunk_size None"),
        ("[functions.f]\nforms = 'recurrent'", "function f: unknown field 'forms'; did you mean form"),
        ("functions = 3", "functions must be tables"),
        ("extra = {a = [1]}", "extra has a wrong value"),
        ("= 3", "is not TOML"),
    ],
)
def test_mistakes_in_a_users_file_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(RequestError, match=message):
        Convention.load(str(path), "kda")


def test_a_users_file_needs_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("state_layout = 'VK'\n[functions.f]\nlength_multiple = 16\n")
    convention = Convention.load(str(path), "gdn", "module:f")
    assert (convention.state_layout, convention.length_multiple) == ("VK", 16)
    handed, dtype = convention.inputs(gdn_case(state=True))["initial_state"]
    assert (handed[0, 0].tolist(), dtype) == ([[0, 2, 4, 6], [1, 3, 5, 7]], "float32")


def test_a_required_state_goes_over_as_zeros() -> None:
    convention = Convention(name="x", mechanism="gdn", initial_state_required=True, state_layout="VK")
    handed, _ = convention.inputs(gdn_case())["initial_state"]
    assert handed.shape == (1, 1, 2, 4)
    assert not handed.any()


@pytest.mark.parametrize(
    ("changes", "case", "reason"),
    [
        ({"length_multiple": 2}, {}, "not a multiple of 2"),
        ({"grouped_heads": False}, {"value_heads": 2}, "grouped heads"),
        ({"supports_empty": False}, {"tokens": 0}, "T = 0"),
        ({"scale": "fixed"}, {"scale": 1.0}, "fixed at K"),
        (
            {"arguments": {f: f for f in ("q", "k", "v", "g", "beta", "scale")}},
            {"state": True},
            "initial state",
        ),
        ({"mechanism": "kda"}, {}, "the case is gdn"),
    ],
)
def test_what_the_function_does_not_promise(changes: dict, case: dict, reason: str) -> None:
    with_limit = Convention(**({"name": "x", "mechanism": "gdn"} | changes))
    assert reason in str(with_limit.refusal(gdn_case(**case)))
    assert Convention("x", "gdn").refusal(gdn_case(**case)) is None


def test_dtype_rules() -> None:
    rules = {"input": "bfloat16", "float32": "float32", "at-least-float32": "float32"}
    assert {rule: Convention.resolve(rule, "bfloat16") for rule in rules} == rules
    assert Convention.resolve("at-least-float32", "float64") == "float64"


@pytest.mark.parametrize("space", ["log2", "linear"])
def test_converted_gates_are_float32_and_the_reference_sees_what_was_handed_over(space: str) -> None:
    convention = Convention("x", "gdn", gate_space=space)
    case = gdn_case(tokens=40)
    theirs, dtype = convention.inputs(case)["g"]
    assert dtype == "float32"
    assert np.array_equal(theirs, theirs.astype(np.float32))
    seen = convention.as_seen(case).g
    back = np.exp2(theirs) if space == "log2" else theirs
    # np.log, a product and np.exp each err by at most 1 ulp; the error in the exponent is scaled by |g| <= 8.
    assert np.all(np.abs(np.exp(seen) - back) <= back * 2.0**-52 * (3 + 2 * np.abs(case.g)))
    # and it is the case's gate up to the one rounding of the hand-over, which moves at least one of them
    slack = 2.0**-24 * (np.abs(case.g) if space == "log2" else 1) + 2.0**-50 * np.abs(case.g)
    assert np.all(np.abs(seen - case.g) <= slack)
    assert np.any(seen != case.g)


def test_natural_log_gates_pass_untouched_and_a_decay_of_zero_stays_zero() -> None:
    case = gdn_case()
    assert Convention("x", "gdn").as_seen(case) is case
    gone = case.replace(g=np.full_like(case.g, -200.0))
    linear = Convention("x", "gdn", gate_space="linear")
    assert not linear.inputs(gone)["g"][0].any()
    assert math.exp(linear.as_seen(gone).g.max()) == 0.0
