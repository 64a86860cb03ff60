"""Errors of expansions of softmax attention on shared random histories, compared in pairs.

Data: ``history`` (``gaussian``, ``sphere`` or ``near``), ``deviation`` (standard deviation of the logits
q·k), ``width``, ``values`` (value width), ``tokens``, ``draws``, ``seed``, and ``comparisons``, a list of
``{"first", "second"}`` with ``share_above`` or ``share_below`` (the share of draws in which the first is
closer) or ``mean`` (``"smaller"`` or ``"larger"``: the first's mean error is). Queries and keys are N(0, s²)
per channel with s² = deviation/√width; ``sphere`` brings each to length s√width; ``near`` adds noise to one
of the keys. Values are N(0, 1). An error is the distance from softmax at the last token. Methods: running
``mean``, ``full`` first order, ``self`` weights to first order, and the delta rule on centred data whose
query is substituted by the centred ``key`` or by the ``least-squares`` query.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from verify.checkers.reading import Wrong, natural
from verify.checkers.terms import IllFormed, rational
from verify.model.errors import EnvironmentProblem
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "paired errors"
KINDS = frozenset({"paired-errors"})
ERROR_RATE = 1e-3
"""Probability that one confidence interval misses: Hoeffding's for shares, the normal one for means."""
QUANTILE = 3.2905
"""Two-sided quantile of the normal distribution at ``ERROR_RATE``."""
LARGEST = 2**26
"""Most numbers held at once."""


def judge(obligation: Obligation) -> Check:
    """``sampled`` when every comparison is on its side with confidence, ``refuted`` on the other side.

    Raises:
        EnvironmentProblem: NumPy is not installed.
    """
    try:
        import numpy
    except ImportError as error:
        raise EnvironmentProblem("NumPy is not installed; run: pip install numpy") from error
    by = f"{NAME} (numpy {numpy.__version__})"
    try:
        open_ones, detail = _compared(obligation.data)
    except Wrong as difference:
        return Check(by, "checker", Verdict.REFUTED, str(difference))
    except (IllFormed, LookupError, TypeError, ValueError, ArithmeticError) as problem:
        return Check(by, "checker", Verdict.REFUTED, f"malformed comparison: {problem!r}")
    verdict = Verdict.UNDECIDED if open_ones else Verdict.SAMPLED
    return Check(by, "checker", verdict, detail)


def _compared(data: Mapping[str, Any]) -> tuple[bool, str]:
    draws, tokens, width, values = (natural(data[name]) for name in ("draws", "tokens", "width", "values"))
    if not data["comparisons"] or min(width, values, tokens) < 1 or draws < 2:
        raise IllFormed("nothing to compare")
    if draws * max(tokens * (width + values), width * values) > LARGEST:
        raise IllFormed("more numbers than are held here")
    deviation = float(rational(data["deviation"]))
    found = _measured(str(data["history"]), deviation, (draws, tokens, width, values), natural(data["seed"]))
    lines, undecided = [], False
    for wanted in data["comparisons"]:
        low, high, text = _interval(found[wanted["first"]], found[wanted["second"]], wanted)
        line = f"{wanted['first']} against {wanted['second']}: {text}"
        if high <= 0:
            raise Wrong(f"{line}, on the other side")
        undecided = undecided or not low > 0  # NaN decides nothing
        lines.append(line)
    means = ", ".join(f"{name} {float(value.mean()):.3g}" for name, value in found.items())
    return undecided, f"{draws} draws; mean errors: {means}; {'; '.join(lines)}"


@lru_cache(maxsize=64)
def _measured(history: str, deviation: float, sizes: tuple[int, int, int, int], seed: int) -> dict[str, Any]:
    import numpy

    spread = math.sqrt(deviation / math.sqrt(sizes[2]))
    with numpy.errstate(all="ignore"):
        q, k, v = draw(numpy.random.default_rng(seed), history, spread, sizes, numpy)
        return errors(q, k, v, spread**2, numpy)


def _interval(first: Any, second: Any, wanted: Mapping[str, Any]) -> tuple[float, float, str]:
    """The interval of the distance to the wrong side, and what it comes from."""
    if "mean" in wanted:
        sign = {"smaller": 1, "larger": -1}[wanted["mean"]]
        gaps = second - first
        middle, half = float(gaps.mean()), QUANTILE * float(gaps.std()) / math.sqrt(len(gaps))
        ends = sorted((sign * (middle - half), sign * (middle + half)))
        return ends[0], ends[1], f"mean error less by {middle:.3g} ± {half:.2g}"
    share, half = float((first < second).mean()), math.sqrt(math.log(2 / ERROR_RATE) / (2 * len(first)))
    text = f"closer in {share:.3f} ± {half:.3f} of the draws"
    if "share_above" in wanted:
        away = share - float(rational(wanted["share_above"]))
    else:
        away = float(rational(wanted["share_below"])) - share
    return away - half, away + half, text


def draw(source: Any, history: str, spread: float, sizes: tuple[int, int, int, int], np: Any) -> Any:
    """Queries (draws×K), keys (draws×T×K) and values (draws×T×V) of random histories."""
    draws, tokens, width, values = sizes
    k = spread * source.standard_normal((draws, tokens, width))
    q = spread * source.standard_normal((draws, width))
    v = source.standard_normal((draws, tokens, values))
    if history == "sphere":
        length = spread * math.sqrt(width)
        k *= length / np.linalg.norm(k, axis=2, keepdims=True)
        q *= length / np.linalg.norm(q, axis=1, keepdims=True)
    elif history == "near":
        q = (k[np.arange(draws), source.integers(0, tokens, draws)] + q / 2) / math.sqrt(1.25)
    elif history != "gaussian":
        raise IllFormed(f"{history!r} is no kind of history")
    return q, k, v


def errors(q: Any, k: Any, v: Any, variance: float, np: Any) -> dict[str, Any]:
    """Distance of every method's output from softmax at the last token, one per draw."""
    draws, tokens, width = k.shape
    logits = np.einsum("ntd,nd->nt", k, q)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    exact = np.einsum("nt,ntv->nv", weights / weights.sum(axis=1, keepdims=True), v)
    mean_k, mean_v, stepwise = np.zeros((draws, width)), np.zeros(exact.shape), np.zeros(exact.shape)
    states = {name: np.zeros((draws, v.shape[2], width)) for name in ("full", "key", "least-squares")}
    for time in range(1, tokens + 1):
        mean_k = mean_k + (k[:, time - 1] - mean_k) / time
        centred, residual = k[:, time - 1] - mean_k, v[:, time - 1] - mean_v
        share = (1 + (centred * q).sum(axis=1, keepdims=True)) / time
        stepwise = stepwise + share * (v[:, time - 1] - stepwise)
        square = (centred**2).sum(axis=1, keepdims=True)
        factors = {"full": 0.0, "key": 1.0, "least-squares": 2 * variance / (1 + variance * square)}
        for name, state in states.items():
            held = factors[name] * np.matmul(state, centred[:, :, None])[:, :, 0]
            state *= 1 - 1 / time
            state += ((residual - held) / time)[:, :, None] * centred[:, None, :]
        mean_v = mean_v + residual / time
    outputs = {"mean": mean_v, "self": stepwise}
    outputs |= {name: mean_v + np.einsum("nvd,nd->nv", state, q) for name, state in states.items()}
    return {name: np.linalg.norm(output - exact, axis=1) for name, output in outputs.items()}
