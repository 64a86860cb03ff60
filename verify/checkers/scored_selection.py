"""Keys kept by rounded scores: exact scores within the stated errors, the dropped mass within its bound.

Data: ``query`` (K rationals), ``keys`` (n×K), ``scale``; ``scores`` and ``errors``, n of each: every exact
score scale·q·k must be within its error of the one computed; ``kept``, indices from 0; ``bound``, which the
softmax mass of the exact scores outside the kept set must not exceed.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.enclosure import Interval, decimal, exp
from verify.checkers.reading import Wrong, dot, matrix, natural, vector, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "scored selection"
KINDS = frozenset({"scored-selection"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when no error is larger than stated and the dropped mass is certainly within its bound."""
    return word(NAME, obligation, _bounded)


def _bounded(data: Mapping[str, Any]) -> str:
    query, keys, scale = vector(data["query"]), matrix(data["keys"]), rational(data["scale"])
    scores, errors, bound = vector(data["scores"]), vector(data["errors"]), rational(data["bound"])
    kept = {natural(index) for index in data["kept"]}
    if {len(scores), len(errors)} != {len(keys)} or not kept <= set(range(len(keys))):
        raise IllFormed("there is not one score and one error per key, or a key is kept that is not there")
    exact = [scale * dot(query, key) for key in keys]
    worst = [abs(one - other) - error for one, other, error in zip(exact, scores, errors, strict=True)]
    if max(worst) > 0:
        place = worst.index(max(worst))
        raise Wrong(
            f"score {place} is {decimal(exact[place])}, not within {decimal(errors[place])} of the stated"
        )
    weights = [exp(score - max(exact)) for score in exact]
    dropped = [weight for index, weight in enumerate(weights) if index not in kept]
    mass = sum(dropped, Interval.point(0)) / sum(weights[1:], weights[0])
    if mass.high > bound:
        raise Wrong(f"the dropped mass is in {mass}, beyond {decimal(bound)}")
    return f"{len(kept)} of {len(keys)} keys kept, dropped mass in {mass}, bound {decimal(bound)}"
