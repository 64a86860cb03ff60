"""Conventions: the presets load, users' files are checked, gates and states are converted."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.convention.explanation import Explanation
from verify.audit.convention.file import presets
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
    served = {
        "cudnn": ("kda",),
        "fla": ("kda", "gdn", "delta", "dplr", "linear", "simple_gla", "gdn2", "softmax"),
        "flashkda": ("kda",),
        "mamba": ("mamba2",),
        "ours": ("kda", "gdn", "delta", "dplr", "gdn2", "linear", "mamba2", "softmax"),
        "sdpa": ("softmax",),
        "sglang": ("kda",),
        "transformers": ("gdn", "kda"),
        "vllm": ("kda",),
    }
    assert presets() == list(served)
    for name, mechanisms in served.items():
        for mechanism in mechanisms:
            found = Explanation.of(f"{name}:{mechanism}").conventions()
            assert found
            for function, convention in found.items():
                assert convention == Convention.load(name, mechanism, function or None)
                assert convention.summary


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
    assert convention.our_tokens(case, output).shape == (1, 3, 1, 2)


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
        ("gate_space = 'log10'", "must be one of ln, log2, linear; did you mean log2"),
        ("gate_space = 2", "gate_space has a wrong value 2, must be one of"),
        ("grouped_heads = 1", "grouped_heads has a wrong value 1, must be true or false"),
        ("length_multiple = 0", "length_multiple has a wrong value 0, must be a whole number from 1"),
        ("head_size = true", "head_size has a wrong value True, must be a whole number from 0"),
        ("cu_seqlens = 3", "cu_seqlens has a wrong value 3, must be a text in quotes"),
        ("lower_bound = '-5'", "lower_bound has a wrong value '-5', must be a number"),
        ("dtypes = ['float23']", "unknown field of dtypes in convention .*'float23'; did you mean float32"),
        ("dtypes = 'float32'", "must be a list of texts"),
        ("positional = ['query']", "unknown field of positional"),
        ("not_stated = ['chunk']", "unknown field of not_stated .*; did you mean chunk_size"),
        ("arguments = 'q'", "arguments has a wrong value 'q', must be a list of texts"),
        ("[arguments]\nquery = 'q'", "unknown field of arguments in convention .* 'query'"),
        ("[arguments]\nq = 3", 'must be a table of texts, such as { q = "query" }'),
        ("[arguments]\nq = 'query'", "no name for k, v, g, beta"),
        ("scale = 'fixed'", "must not name scale"),
        ("chunk_size = 64", "with chunk_size 64"),
        ("form = 'chunked'", "with chunk_size None"),
        ("[functions.f]\nforms = 'recurrent'", "function f: unknown field 'forms'; did you mean form"),
        ("functions = 3", "functions must be tables"),
        ("extra = {a = [1]}", "extra has a wrong value"),
        ("gate_form = 'softplus'\ngate_space = 'log2'", "gate_space is of gates handed over as values"),
        ("gate_form = 'sigmoid'", "needs a lower_bound below 0"),
        ("lower_bound = -5.0", "needs a lower_bound below 0, got gate_form 'value' with lower_bound -5.0"),
        ("gate_form = 'step'", "the step form of gates is one number per head"),
        ("returns = 'nothing'", "a function that returns nothing needs an output_buffer"),
        ("state_buffer = 'ht'", "the final state cannot be returned and in state_buffer at once"),
        ("state_indices = 'i'", "needs state_in_place = true"),
        ("returns = 'output'\nstate_in_place = true", "needs initial_state_required = true"),
        ("token_layout = 'THD'", "packed tokens .* need a name for cu_seqlens"),
        ("overwrites = ['v']\ngradients = 'output'", "is not differentiated"),
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
        ({"scale": "fixed"}, {"scale": 1.0}, "fixed at 0.5"),
        (
            {"arguments": {f: f for f in ("q", "k", "v", "g", "beta", "scale")}},
            {"state": True},
            "initial state",
        ),
        ({"mechanism": "kda"}, {}, "the case is gdn"),
        ({"dtypes": ("bfloat16",)}, {}, "float32 is not supported, only bfloat16"),
        ({"head_size": 128}, {}, "K = 4 and V = 2 are not supported, only K = V = 128"),
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


def test_write_strengths_above_those_of_a_sigmoid_are_refused() -> None:
    case = gdn_case()
    assert Convention("x", "gdn", beta_form="sigmoid").refusal(case) is None
    above = case.replace(beta=1.5 * np.ones_like(case.beta))
    assert "above 1 is none that sigmoid gives" in str(
        Convention("x", "gdn", beta_form="sigmoid").refusal(above)
    )
    assert Convention("x", "gdn", beta_form="2*sigmoid").refusal(above) is None


def test_tiled_heads_and_packed_tokens_are_their_own_inverse_where_they_should_be() -> None:
    """Head 0 of 2 lends to output heads 0 and 1 of ours, to 0 and 2 of theirs."""
    case = gdn_case(value_heads=4).replace(q=np.ones((1, 3, 2, 4)), k=np.ones((1, 3, 2, 4)))
    heads = np.broadcast_to(np.arange(4.0)[:, None], (1, 3, 4, 2))
    tiled = Convention("x", "gdn", head_order="tiled", token_layout="THD", cu_seqlens="cu")
    theirs = tiled.their_tokens(case, heads)
    assert theirs.shape == (3, 4, 2)
    assert theirs[0, :, 0].tolist() == [0, 2, 1, 3]
    assert np.array_equal(tiled.our_tokens(case, theirs), heads)
    assert tiled.their_tokens(case, case.q, "q").shape == (3, 2, 4)
    states = np.arange(4.0)[None, :, None, None] * np.ones((1, 4, 4, 2))
    assert tiled.their_state(case, states)[0, :, 0, 0].tolist() == [0, 2, 1, 3]
    assert np.array_equal(tiled.our_state(case, tiled.their_state(case, states)), states)


def test_constants_of_gates_go_over_in_their_shapes() -> None:
    named = {f: f for f in ("q", "k", "v", "g", "beta", "scale", "initial_state", "A_log", "dt_bias")}
    convention = Convention("x", "kda", arguments=named, gate_form="softplus")
    case = gdn_case(value_heads=2).replace(
        mechanism="kda", g=np.zeros((1, 3, 2, 4)), q=np.ones((1, 3, 2, 4)), k=np.ones((1, 3, 2, 4))
    )
    handed = convention.inputs(case)
    assert handed["A_log"][0].shape == (2,)
    assert handed["dt_bias"][0].shape == (8,)
    assert {handed[f][1] for f in ("A_log", "dt_bias")} == {"float32"}
    heads = dataclasses.replace(convention, dt_bias_shape="heads").inputs(case)["dt_bias"][0]
    assert np.array_equal(heads.reshape(-1), handed["dt_bias"][0])
    assert len(set(heads[0])) == 4
    assert convention.as_seen(case).g.max() == 0


def test_norms_and_coarser_gates_change_what_is_asked_for() -> None:
    case = gdn_case(tokens=2)
    normed = Convention("x", "gdn", qk_norm="unit", qk_norm_eps=0.0).as_seen(case)
    assert np.array_equal(normed.k, case.k / 2)
    assert normed.dtype == "float64"
    coarse = Convention("x", "gdn", gate_dtype="input")
    thirds = case.replace(dtype="bfloat16", g=np.full_like(case.g, np.float32(-1 / 3)))
    handed, dtype = coarse.inputs(thirds)["g"]
    assert dtype == "bfloat16"
    assert handed.flat[0] == -0.333984375
    assert coarse.as_seen(thirds).g.flat[0] == handed.flat[0]


@pytest.mark.parametrize(
    ("name", "got", "said"),
    [
        ("final_state", (1, 2, 5, 4), 'matches if state_layout = "VK"'),
        ("output", (1, 2, 3, 5), 'matches if token_layout = "BHTD"'),
        ("output", (1, 3, 2, 4), ""),
    ],
)
def test_the_shape_of_another_layout_is_named(name: str, got: tuple[int, ...], said: str) -> None:
    promised = (1, 2, 4, 5) if name == "final_state" else (1, 3, 2, 5)
    assert Convention("x", "gdn").other_layout(name, got, promised).removeprefix("; ") == said
