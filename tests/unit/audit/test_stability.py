"""Unstable algorithms: the doubling model errs as such kernels do, and is named where it loses results."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.unstable import REASON, explain_instability, loses
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.judge import judge
from verify.audit.laboratory import Laboratory
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.doubling import doubled, doubling_delta_rule
from verify.audit.tolerance.predicted.prediction import Algorithm, Prediction
from verify.audit.tolerance.predicted.sensitivity import causes
from verify.audit.tolerance.predicted.stability import instability, recurrence
from verify.model.errors import RequestError


def case_of(name: str, mechanism: str = "gdn", tokens: int = 40) -> Case:
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    shape = Shape(1, tokens, 1, 2, 8, 4)
    return draw_case(kind, mechanism, shape, dtype="float32", seed=1, with_state=True)


def declared(mechanism: str = "gdn", *, chunk_size: int = 32, inverse: str = "doubling") -> Convention:
    ours = Convention.load("ours", mechanism, f"chunked_{mechanism}")
    return dataclasses.replace(ours, chunk_size=chunk_size, inverse=inverse, chunk_argument="")


def by_doubling(case: Case, chunk_size: int) -> Outcome:
    """A float32 kernel with a doubling inverse: the model's own formulas in float32 arithmetic."""
    tensors = {field: torch.from_numpy(array).float() for field, array in case.arrays().items()}
    output, state = doubling_delta_rule(**tensors, scale=case.scale, chunk_size=chunk_size)
    return Outcome(output.double().numpy(), state.double().numpy(), "float32", "float32", None, 0.0)


@pytest.mark.parametrize("mechanism", ["delta", "gdn", "kda"])
@pytest.mark.parametrize("chunk_size", [1, 5, 16, 64])
def test_without_rounding_it_is_the_definition(mechanism: str, chunk_size: int) -> None:
    case = case_of("random", mechanism, tokens=37)
    tensors = {field: torch.from_numpy(array) for field, array in case.arrays().items()}
    output, state = doubling_delta_rule(**tensors, scale=case.scale, chunk_size=chunk_size)
    reference = float64_reference(case)
    assert np.abs(output.numpy() - reference.output).max() < 1e-13 * np.abs(reference.output).max()
    assert np.abs(state.numpy() - reference.final_state).max() < 1e-13 * np.abs(reference.final_state).max()


@pytest.mark.parametrize("rows", [1, 2, 3, 16, 17])
def test_doubling_inverts(rows: int) -> None:
    lower = torch.randn(2, rows, rows, dtype=torch.float64, generator=torch.manual_seed(0)).tril(-1) / 3
    exact = torch.eye(rows, dtype=torch.float64)
    assert (doubled(lower) @ (exact + lower) - exact).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("name", "lost"), [("random", False), ("correlated", False), ("constant-key-0.97", True)]
)
def test_it_is_unstable_only_on_nearly_identical_keys(name: str, lost: bool) -> None:
    case = case_of(name)
    judged = judge(case, by_doubling(case, 32), Bench(declared(), 100).yardstick(case))
    assert (judged.yardstick.unstable is not None) == lost
    assert judged.failed == lost
    assert loses(judged) == lost
    assert judged.output is not None
    unstable = judged.yardstick.unstable
    sound = np.s_[:] if unstable is None else ~unstable.output
    # The model predicts what such a kernel does: observed over predicted deviation, over all sound rows.
    ratio = (judged.output.error / judged.yardstick.output_deviation)[sound]
    assert 0.1 < ratio.max() < 5


def test_a_good_result_is_no_fault_of_a_declared_unstable_algorithm() -> None:
    """A kernel that declares doubling and substitutes is right, and told so."""
    case = case_of("constant-key-0.97")
    from kernels.gdn.recurrent import recurrent_gdn

    tensors = {field: torch.from_numpy(array).float() for field, array in case.arrays().items()}
    output, state = recurrent_gdn(**tensors, scale=case.scale, output_final_state=True)
    outcome = Outcome(output.double().numpy(), state.double().numpy(), "float32", "float32", None, 0.0)
    judged = judge(case, outcome, Bench(declared(), 100).yardstick(case))
    assert judged.yardstick.unstable is not None
    assert not judged.failed


def test_wrong_numbers_elsewhere_are_not_called_unstable() -> None:
    case = case_of("constant-key-0.97")
    outcome = by_doubling(case, 32)
    assert outcome.output is not None
    outcome.output[0, 0] += 1
    judged = judge(case, outcome, Bench(declared(), 100).yardstick(case))
    assert judged.failed
    assert not loses(judged)


def test_the_operation_is_named() -> None:
    case = case_of("constant-key-0.97")
    algorithm = Algorithm.of(declared(), "float32")
    found = causes(case, float64_reference(case), algorithm, (0, 31, 0))
    assert [cause.deviation for cause in found] == sorted((c.deviation for c in found), reverse=True)
    assert found[0].site.operation == "bmm"
    assert "@" in str(found[0].site)
    assert Path(found[0].site.file).name == "doubling.py"
    assert 1 <= found[0].call <= found[0].calls
    # Scores, reads and gates alone are harmless; what comes after the powers is what they already lost.
    gates = [cause for cause in found if cause.site.operation == "exp"]
    assert gates
    assert gates[0].deviation < 1e-4 * found[0].deviation


def test_one_operation_alone_errs_less_than_all() -> None:
    """Stable algorithms: the parts' squares add up to about the whole's."""
    case = case_of("random")
    algorithm = Algorithm.of(declared(inverse="substitution"), "float32")
    reference = float64_reference(case)
    found = causes(case, reference, algorithm, (0, 39, 1))
    whole = Bench(declared(inverse="substitution"), 100).yardstick(case).output_deviation[0, 39, 1]
    parts = sum(cause.deviation**2 for cause in found) ** 0.5
    assert 0.4 < 2**0.5 * parts / whole < 2.5


def test_the_finding_says_where_and_by_what() -> None:
    case = case_of("constant-key-0.97")
    convention = declared()
    bench = Bench(convention, 100)
    judged = judge(case, by_doubling(case, 32), bench.yardstick(case))

    class Stand:
        def __init__(self) -> None:
            self.convention = convention

    lab = Laboratory(Stand(), bench, "float32")  # type: ignore[arg-type]
    finding = explain_instability(lab, [judged])
    assert finding.reason == REASON
    assert "inverse by doubling in float32" in finding.detail
    assert "predicted/doubling.py" in finding.detail
    assert "constant-key-0.97" in finding.evidence


def test_where_the_recurrence_is_useless_too_the_input_is_hard() -> None:
    """A prediction beyond every output, of the recurrence as well: nothing is replaced."""
    case = case_of("random", tokens=8)
    reference = float64_reference(case)
    algorithm = Algorithm.of(declared(), "float32")
    huge = Prediction(np.full((1, 8, 2), 1e9), np.full((1, 2), 1e9), 4)
    bench = Bench(declared(), 100)
    y = bench.yardstick(case)

    def allow(_prediction, _reference, asked):  # type: ignore[no-untyped-def]
        assert asked == recurrence(case, algorithm)
        wide = np.sqrt(np.square(reference.output).sum(-1)) * 1.01
        states = np.sqrt(np.square(reference.final_state).sum((-1, -2))) * 1.01
        return dataclasses.replace(_declared(y), output=wide, state=states)

    assert instability(case, reference, algorithm, huge, allow) is None


def _declared(y):  # type: ignore[no-untyped-def]
    from verify.audit.tolerance.predicted.bounds import Tolerance

    return Tolerance(y.output_tolerance, y.state_tolerance, 1.0)


def test_the_recurrence_has_no_more_stable_form() -> None:
    case = case_of("random", tokens=8)
    plain = dataclasses.replace(Convention.load("ours", "gdn", "recurrent_gdn"))
    assert recurrence(case, Algorithm.of(plain, "float32")) is None
    stable = recurrence(case, Algorithm.of(declared(), "float32"))
    assert stable is not None
    assert (stable.form, stable.chunk_size, stable.inverse) == ("recurrent", None, "substitution")


@pytest.mark.parametrize(("mechanism", "form"), [("linear", "chunked"), ("gdn", "recurrent")])
def test_doubling_is_of_chunked_functions_that_erase(mechanism: str, form: str) -> None:
    ours = Convention.load("ours", mechanism, f"{form}_{mechanism}")
    with pytest.raises(RequestError, match="inverse is of chunked functions that erase"):
        dataclasses.replace(ours, inverse="doubling").check()
