"""What each kind of attention layer keeps and moves, as formulas in the sizes, and the same counted.

Numbers, not bytes; per layer. T tokens of history; c numbers per token (2·heads·width for keys and values,
the latent width for a latent cache); a window of w; an indexer of i numbers per token choosing k tokens; a
pooled entry per m tokens beside a window; a state of s numbers.
"""

from typing import Any

from sympy import Expr, Symbol, symbols

from verify.model.evidence import Obligation

T, G, c, w, i, k, m, s, n, g = symbols("T G c w i k m s n g")

KEPT: dict[str, Expr] = {
    "cache": c * T,
    "window": c * w,
    "top-k": (c + i) * T,
    "pooled": c * (w + T / m),
    "state": s,
}
"""Numbers kept after T ≥ w, k tokens (a multiple of m)."""
READ: dict[str, Expr] = {
    "cache": c * T,
    "window": c * w,
    "top-k": i * T + c * k,
    "pooled": c * (w + T / m),
    "state": s,
}
"""Numbers read to decode the token that makes the history T long."""
SIZES: dict[str, dict[str, Symbol]] = {
    "cache": {"token": c},
    "window": {"token": c, "window": w},
    "top-k": {"token": c, "index": i, "chosen": k},
    "pooled": {"token": c, "block": m, "window": w},
    "state": {"state": s},
}
AT: dict[Symbol, int] = {c: 16, w: 32, i: 2, k: 16, m: 16, s: 64}
"""One head of width 8, so c = 2·8 and s = 8²; small enough to count one by one."""
HISTORIES = (64, 256, 1024, 4096)


def _number(formula: Expr, **values: int) -> int:
    found = formula.subs({**AT, **{symbols(name): value for name, value in values.items()}})
    if not found.is_Integer:
        raise ValueError(f"{formula} is {found} at {values}: no whole number")
    return int(found)


def _obligation(scheme: str, label: str, runs: list[dict[str, int]], sizes: dict[str, int]) -> Obligation:
    given = {name: AT[symbol] for name, symbol in SIZES[scheme].items()} | sizes
    return Obligation("access-count", label, "E", {"scheme": scheme, "sizes": given, "runs": runs})


def per_token(scheme: str, extra: int = 0, width: int = AT[c]) -> Obligation:
    """Kept and read at several histories; ``extra`` is added to what is read (a fault, for a mutant)."""
    sizes = {} if scheme == "state" else {"token": width}
    runs: list[dict[str, int]] = []
    for history in HISTORIES:
        kept, read = (_number(part[scheme].subs(c, width), T=history) for part in (KEPT, READ))
        writes = {"state": AT[s], "top-k": width + AT[i], "pooled": 2 * width}.get(scheme, width)
        run = {"prompt": history - 1, "generated": 1, "branches": 0, "draft": 1}
        runs.append({**run, "kept": kept, "read": read + extra, "written": writes})
    what = scheme if width == AT[c] else f"{scheme} of width {width}"
    histories = ", ".join(str(history) for history in HISTORIES)
    return _obligation(scheme, f"{what}: one token decoded at {histories}, counted", runs, sizes)


def counted(scheme: str, label: str, run: dict[str, int], formulas: dict[str, Expr]) -> Obligation:
    """One longer run, its counts by the formulas."""
    values = {"T": run["prompt"], "G": run["generated"], "n": run["branches"], "g": run["draft"]}
    counts: dict[str, Any] = {name: _number(formula, **values) for name, formula in formulas.items()}
    return _obligation(scheme, label, [{**run, **counts}], {})
