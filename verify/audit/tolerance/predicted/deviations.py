"""How far runs of a kernel's model with random rounding come from the run without."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.tolerance.predicted import model
from verify.model.errors import RequestError
from verify.numbers.formats import FLOAT64, Format, format_named

if TYPE_CHECKING:
    from verify.audit.tolerance.predicted.prediction import Algorithm

_OUTPUT_SEED_OFFSET = 1


def deviations(
    case: Case,
    exact: Mapping[str, Array],
    dtypes: Mapping[str, str],
    algorithm: "Algorithm",
    *,
    runs: int,
    seed: int,
    functional: Cotangent | None = None,
    handed: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Deviation of each run from the unrounded one, named as `model.run` names them: ``[2 runs, ...]``.

    The first half of the runs is coherent, the second is not.

    For float64 computation, which cannot be rounded within float64, the errors are those of float32
    arithmetic times 2^-29: to first order in u a rounding error is proportional to u.
    """
    compute = format_named(algorithm.model_dtype)
    modelled = format_named("float32") if compute == FLOAT64 else compute
    ratio = float(compute.unit_roundoff / modelled.unit_roundoff)
    rounded = model.run(case, algorithm, modelled, 2 * runs, seed, functional, handed=handed)
    # Not the exact results: were the model wrong, its fault would pass for rounding and excuse any kernel.
    plain = model.run(case, algorithm, None, 1, seed, functional, handed=handed)
    results = {}
    for name, values in exact.items():
        deviation = (rounded[name].reshape(2 * runs, *values.shape) - plain[name]) * ratio
        target = format_named(dtypes[name])
        if target.precision < compute.precision:
            # Independent draws suffice here: nearest rounding errs by no more than each one's deviation.
            noise = np.random.default_rng([seed, _OUTPUT_SEED_OFFSET])
            deviation = round_randomly(values + deviation, target, noise) - values
        results[name] = deviation
    return results


def round_randomly(x: Array, target: Format, rng: np.random.Generator) -> Array:
    """Each entry moved to a neighbour in ``target``, subnormals included, with mean error 0.

    Raises:
        RequestError: an entry lies outside the format's range.
    """
    if (np.abs(x) > float(target.max)).any():
        raise RequestError(f"{np.abs(x).max():.3g} is beyond the largest number of {target.name}")
    _, exponent = np.frexp(x)
    quantum = np.ldexp(1.0, np.maximum(exponent - 1, target.min_exponent) - target.precision + 1)
    return np.asarray(np.floor(x / quantum + rng.random(x.shape)) * quantum)
