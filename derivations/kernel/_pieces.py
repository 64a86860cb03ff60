"""The recurrence run in pieces on literal numbers, each piece from the state the one before passed on."""

from fractions import Fraction
from itertools import combinations
from typing import Any

from derivations.kernel._runs import drawn
from verify.model.evidence import Obligation
from verify.numbers.formats import Format, round_to

Numbers = list[Fraction]
TOKENS = 5


def in_pieces(
    label: str,
    compute: Format | None = None,
    passed: Format | None = None,
    *,
    forget: bool = False,
    differs: bool = False,
) -> Obligation:
    """Every way to cut 5 drawn steps, K = 3, V = 2.

    Args:
        label: what is shown.
        compute: what every operation rounds to, if to anything.
        passed: what a state rounds to where it is passed on, if to anything.
        forget: whether every piece starts from a state of 0 (for a mutant).
        differs: whether the results shall not be those of the whole run.
    """
    inputs = drawn(3, 2, TOKENS, 2, 11, Fraction(1))
    runs = []
    for cuts in (cuts for count in range(1, TOKENS) for cuts in combinations(range(1, TOKENS), count)):
        outputs, state = [], inputs["state"]
        for start, end in zip([0, *cuts], [*cuts, TOKENS], strict=True):
            if start:
                state = [[Fraction(0) if forget else _rounded(passed, x) for x in column] for column in state]
            for step in inputs["steps"][start:end]:
                state = [_step(column, step, v, compute) for column, v in zip(state, step["v"], strict=True)]
                outputs.append([_dot(step["q"], column, compute) for column in state])
        runs.append({"cuts": list(cuts), "outputs": _text(outputs), "final": _text(state)})
    steps = [{name: _text(value) for name, value in step.items()} for step in inputs["steps"]]
    formats = {"compute": _layout(compute), "passed": _layout(passed)}
    data = {"state": _text(inputs["state"]), "steps": steps, "runs": runs, "differs": differs, **formats}
    return Obligation("split-run", label, "E", data)


def _step(column: Numbers, step: dict[str, Any], v: Fraction, target: Format | None) -> Numbers:
    held = [_rounded(target, a * x) for a, x in zip(step["a"], column, strict=True)]
    missing = _rounded(target, v - _dot(step["k"], held, target))
    write = _rounded(target, step["beta"] * missing)
    products = [_rounded(target, k * write) for k in step["k"]]
    return [_rounded(target, x + y) for x, y in zip(held, products, strict=True)]


def _dot(left: Numbers, right: Numbers, target: Format | None) -> Fraction:
    total = Fraction(0)
    for x, y in zip(left, right, strict=True):
        total = _rounded(target, total + _rounded(target, x * y))
    return total


def _rounded(target: Format | None, x: Fraction) -> Fraction:
    if target is None:
        return x
    value = round_to(target, x)
    if value is None:
        raise ArithmeticError(f"{x} overflows {target.name}")
    return value


def _layout(target: Format | None) -> dict[str, int] | None:
    return target and {"precision": target.precision, "min_exponent": target.min_exponent}


def _text(value: Any) -> Any:
    return [_text(item) for item in value] if isinstance(value, list) else str(value)
