"""The GDN form of softmax is unstable for long keys: its transition leaves [−1, 1]."""

from fractions import Fraction
from typing import Any

from sympy import Expr, IndexedBase, Integer, Rational, Sum, symbols

from counterexamples.gdn import _settling as settling
from counterexamples.gdn._construct import EXACT, bounded, history, states
from counterexamples.gdn._settling import later, moved, n, norm, radius, square, vector
from counterexamples.gdn._symbols import SIZES, K, c, dot, e, i, j, k, kappa, t
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

x, top = symbols("x M")
unit, slack, weight, value = (IndexedBase(name) for name in ("u", "r", "p", "v"))
eigenvalue = 1 - (1 + n) / t
LIMIT = Rational(45, 16)
LENGTH = 40
"""Tokens of the long history."""


def _along(value_along: Expr) -> Obligation:
    parallel = Definition("along the key", vector[c], kappa[t, c], free=(c,))
    setting = Setting((parallel,), (norm,), nonempty=(t, K), instances=SIZES)
    chain = Chain("the transition along the centred key", setting, moved(e))
    inserted = (1 - 1 / t - square / t) * kappa[t, e]
    chain = chain.unfold("insert the key", inserted, "along the key")
    return chain.use("its squared length", value_along * kappa[t, e], norm=-kappa[t, e] / t).obligation()


def _across() -> Obligation:
    orthogonal = Hypothesis("orthogonal", dot(kappa[t, c], vector[c]), 0)
    setting = Setting((), (orthogonal,), nonempty=(t, K), instances=SIZES)
    chain = Chain("the transition across the centred key", setting, moved(e))
    after = (1 - 1 / t) * vector[e]
    return chain.use("nothing is erased", after, orthogonal=-kappa[t, e] / t).obligation()


def _edges(threshold: Expr) -> tuple[Obligation, Obligation]:
    name = symbols("lambda_t")
    along = Definition("eigenvalue", name, eigenvalue)
    setting = Setting((along,), nonempty=(t,), instances=({t: 2}, {t: 5}))
    low = Chain("distance from −1", setting, name + 1)
    low = low.unfold("over t", (threshold - n) / t, "eigenvalue")
    high = Chain("distance from 1", setting, 1 - name).unfold("over t", (1 + n) / t, "eigenvalue")
    return low.obligation(), high.obligation()


def _centred_length(factor: int) -> Obligation:
    """‖κ‖² ≤ 4B(t − 1)²/t² for keys with ‖k‖² ≤ B, at t = m + 1."""
    last = later + 1
    key = Definition("centred key", kappa[last, c], k[last, c] - Sum(k[j, c], (j, 1, last)) / last, (c,))
    room = Definition("slack", slack[j], radius - dot(k[j, c], k[j, c]), free=(j,))
    sizes = ({later: 1, K: 2}, {later: 3, K: 2})
    setting = Setting((key, room), nonnegative=(slack,), nonempty=(later, K), instances=sizes)
    chain = Chain("the largest centred key", setting, factor * radius * later**2 / last**2)
    scale = later / last**2
    opposite = Sum(dot(k[last, c] + k[j, c], k[last, c] + k[j, c]), (j, 1, later))
    apart = Sum(dot(k[last, c] - k[j, c], k[last, c] - k[j, c]), (j, 1, later))
    slacks = Sum(2 * slack[last] + 2 * slack[j], (j, 1, later))
    chain = chain.unfold("parallelogram law", scale * (slacks + opposite + apart), "slack")
    chain = chain.drop("slacks and squares", scale * apart, scale * slacks, scale * opposite)
    gathered = Sum(k[last, c] - k[j, c], (j, 1, later))
    pairs = Sum(dot(k[i, c] - k[j, c], k[i, c] - k[j, c]), (i, 1, later), (j, 1, later)) / (2 * last**2)
    whole = Sum(gathered**2, (c, 1, K)) / last**2
    chain = chain.rearrange("Lagrange's identity, channel by channel", whole + pairs)
    chain = chain.drop("squares", whole, pairs)
    lengths = dot(kappa[last, c], kappa[last, c])
    spelled = Sum((k[last, c] - Sum(k[j, c], (j, 1, last)) / last) ** 2, (c, 1, K))
    chain = chain.split("the newest key leaves its mean", spelled, last, later)
    return chain.unfold("name the centred key", lengths, "centred key").obligation()


def _margin(bound: Expr, rest: Expr) -> tuple[Obligation, Obligation]:
    """2t − 1 − 4B(t − 1)²/t² >= 0, at t = 3 + x and at t = 2."""
    setting = Setting(nonnegative=(x,))
    time = 3 + x
    start = 2 * time - 1 - 4 * bound * (time - 1) ** 2 / time**2
    terms = x * rest / time**2
    from_three = Chain("the margin from t = 3 on", setting, start).rearrange("over t²", terms)
    from_three = from_three.drop("no term is negative", Integer(0), terms)
    at_two = Chain("the margin at t = 2", Setting(), Integer(3) - bound)
    return from_three.obligation(), at_two.rearrange("arithmetic", Rational(3, 16)).obligation()


def _beyond(slope: Expr) -> Obligation:
    """Keys −√B·u, −√B·u, √B·u with B = 45/16 + x: the eigenvalue at t = 3."""
    size = symbols("R")
    keys = tuple(
        Definition(f"key {place}", k[place, c], sign * size * unit[c], (c,))
        for place, sign in ((1, -1), (2, -1), (3, 1))
    )
    squared = Hypothesis("direction", dot(unit[c], unit[c]), 1), Hypothesis("length", size**2, LIMIT + x)
    setting = Setting(keys, squared, nonempty=(K,), instances=({K: 2}, {K: 3}))
    centred = k[3, c] - (k[1, c] + k[2, c] + k[3, c]) / 3
    chain = Chain("the eigenvalue at t = 3", setting, 1 - (1 + dot(centred, centred)) / 3)
    along = Rational(16, 9) * size**2 * dot(unit[c], unit[c])
    chain = chain.unfold("insert the keys", 1 - (1 + along) / 3, *(key.name for key in keys))
    factor = -Rational(16, 27)
    chain = chain.use("a unit direction", 1 - (1 + Rational(16, 9) * size**2) / 3, direction=factor * size**2)
    return chain.use("the squared length", -1 - slope * x, length=factor).obligation()


def _attained(last: str) -> Obligation:
    low, high = (Fraction(-3, 2), Fraction(-3, 4)), (Fraction(3, 2), Fraction(3, 4))
    return history(
        "three keys of squared length 45/16",
        (low, low, high),
        ((0,), (0,), (1,)),
        eigenvalues=["0", "1/2", last],
        norm_squared=["45/16"] * 3,
    )


def _alternating(length: int) -> tuple[list[tuple[int]], list[tuple[int]]]:
    signs = [0] + [1 if place % 2 else -1 for place in range(1, length)]
    return [(6 * sign,) for sign in signs], [(sign,) for sign in signs]


PRINTED_STATES = ["0", "3/2", "-14", "123/2", "-3921/10", "7847/6", "-5604", "230475/16"]
PRINTED_EIGENVALUES = ["0", "-4", "-34/3", "-69/16", "-32/5", "-10/3", "-30/7", "-329/128"]


def _first_eight(first: list[str]) -> Obligation:
    keys, values = _alternating(8)
    data: dict[str, Any] = {
        "keys": [[str(key[0])] for key in keys],
        "values": [[str(entry[0])] for entry in values],
        "erase": True,
        "states": [[[state]] for state in first],
        "eigenvalues": PRINTED_EIGENVALUES,
    }
    return Obligation("centred-delta", "keys 0, 6, −6, 6, …, values 0, 1, −1, 1, …, eight tokens", "E", data)


def _long() -> Obligation:
    keys, values = _alternating(LENGTH)
    found = states(keys, values)
    mean, outputs = Fraction(0), []
    for time, (entry, state) in enumerate(zip(values, found, strict=True), start=1):
        mean += (entry[0] - mean) / time
        outputs.append([str(EXACT.number(mean) + 6 * EXACT.entry(state, 0, 0))])
    label = f"the same history over {LENGTH} tokens, read with query 6"
    return history(label, keys, values, query=["6"], outputs=outputs)


def _size(time: int, **bounds: str) -> Obligation:
    """The state after a token of the long history, between two numbers."""
    state = symbols("S")
    reached = EXACT.entry(states(*_alternating(LENGTH))[time - 1], 0, 0)
    return bounded(f"the state after token {time} of that history", state, {state: reached}, "E", **bounds)


def _hull() -> Obligation:
    """M − Σ p_j v_j >= 0 for weights of sum 1 and values at most M."""
    room = Definition("slack", slack[j], top - value[j], free=(j,))
    whole = Hypothesis("total", Sum(weight[j], (j, 1, t)), 1)
    setting = Setting((room,), (whole,), (weight,), (slack,), nonempty=(t,), instances=({t: 2}, {t: 4}))
    start = top - Sum(weight[j] * value[j], (j, 1, t))
    chain = Chain("softmax stays below the largest value", setting, start)
    spread = top * Sum(weight[j], (j, 1, t)) - Sum(weight[j] * value[j], (j, 1, t))
    chain = chain.use("the weights sum to 1", spread, total=-top)
    slacks = Sum(weight[j] * slack[j], (j, 1, t))
    chain = chain.unfold("collect the slacks", slacks, "slack")
    return chain.drop("no slack is negative", Integer(0), slacks).obligation()


def parts() -> tuple[Part, ...]:
    """Eigenvalues, the threshold, its sharpness, the growth, and its end."""
    return (
        Part(
            r"$M_t=(1-\tfrac1t)I-\tfrac1t\kappa_t\kappa_t^\top$ has the eigenvalue"
            r" $\lambda_t=1-(1+\|\kappa_t\|^2)/t$ along $\kappa_t$ and $1-\tfrac1t$ across it.",
            (_along(eigenvalue), _across()),
        ),
        Part(
            r"$1+\lambda_t=(2t-1-\|\kappa_t\|^2)/t$ and $1-\lambda_t=(1+\|\kappa_t\|^2)/t>0$:"
            r" $|\lambda_t|\le1$ exactly when $\|\kappa_t\|^2\le2t-1$.",
            _edges(2 * t - 1),
        ),
        Part(
            r"If all $\|k_j\|^2\le B$, then $\|\kappa_t\|^2\le4B(t-1)^2/t^2$ (written for $t=m+1\ge2$).",
            (_centred_length(4),),
        ),
        Part(
            r"For $B=\tfrac{45}{16}$ this is at most $2t-1$ at every $t\ge2$, with equality at $t=3$; and"
            r" $\kappa_1=0$. So with $\|k_j\|^2\le\tfrac{45}{16}$, unit keys for one, $|\lambda_t|\le1$"
            r" always.",
            _margin(LIMIT, 2 * x**2 + Rational(23, 4) * x + 3),
        ),
        Part(
            r"The bound is sharp: $k=-(\tfrac32,\tfrac34),-(\tfrac32,\tfrac34),(\tfrac32,\tfrac34)$ of"
            r" squared length $\tfrac{45}{16}$ give $\lambda_3=-1$, and $-Ru,-Ru,Ru$ with a unit vector $u$"
            r" and $R^2=\tfrac{45}{16}+x$ give $\lambda_3=-1-\tfrac{16}{27}x$.",
            (_attained("-1"), _beyond(Rational(16, 27))),
        ),
        Part(
            r"Beyond it the state can grow on bounded data: $k=0,6,-6,6,\dots$, $v=0,1,-1,1,\dots$ give"
            r" $S=0,\tfrac32,-14,\tfrac{123}2,-\tfrac{3921}{10},\dots$ with $\lambda=0,-4,-\tfrac{34}3,"
            r"-\tfrac{69}{16},-\tfrac{32}5,\dots$; at $t=17$ it is below $-1.4\cdot10^6$.",
            (_first_eight(PRINTED_STATES), _long(), _size(17, below="-1400000")),
        ),
        Part(
            r"Softmax stays in the hull of the values: $M-\sum_jp_jv_j=\sum_jp_j(M-v_j)\ge0$ for values at"
            r" most $M$ (and alike from below).",
            (_hull(),),
        ),
        Part(
            r"The growth ends: $(1-\tfrac1t)^2\|x\|^2-\|M_tx\|^2=(\kappa_t\cdot"
            r" x)^2(2(t-1)-\|\kappa_t\|^2)/t^2$, and from $t\ge2B$ on $4B(t-1)^2/t^2\le2(t-1)$. So each"
            r" column has $M_tS_{t-1}=(1-\tfrac1t)a$ with $\|a\|\le\|S_{t-1}\|$, and"
            r" $\|S_t\|^2\le(1-\tfrac1t)\|S_{t-1}\|^2+\tfrac1t\|\kappa_t\|^2(v_t-\bar v_{t-1})^2$: an average"
            r" of the old square and of something bounded. In the history above $S_{40}$ is in $(0,1)$.",
            (
                settling.contracts(2 * (t - 1) - n),
                settling.late(),
                settling.averaged(),
                _size(LENGTH, above="0", below="1"),
            ),
        ),
    )


CLAIM = Claim(
    id="gdn.form-unstable",
    title="The GDN form of softmax is unstable for long keys: its transition leaves [−1, 1]",
    statement=(
        r"The transition of gdn.form has the eigenvalue $1-(1+\|\kappa_t\|^2)/t$ along $\kappa_t$, at most 1"
        r" in size exactly when $\|\kappa_t\|^2\le2t-1$. If all $\|k_j\|^2\le\tfrac{45}{16}$ it stays in"
        r" $[-1,1]$, and $\tfrac{45}{16}$ is sharp. Beyond it the state can grow by orders of magnitude on"
        r" bounded data, while softmax stays in the hull of the values: with scalar keys $\pm6$ and values"
        r" $\pm1$ the state reaches $-1.4\cdot10^6$. The growth is transient: from"
        r" $t\ge2\max\|k_j\|^2$ on the transition contracts, so that bounded data give a bounded state."
    ),
    source="new: completes article A, section 2",
    status=Status.NEW,
    scope="every t and K for the eigenvalues, the threshold and the end of the growth; one exact history",
    variables=(
        Variable(r"\kappa_t", r"centred key, $\mathbb{R}^K$; $n=\|\kappa_t\|^2$"),
        Variable("k_j", r"keys, $\mathbb{R}^K$, with $\|k_j\|^2\le B$"),
        Variable("t", r"time, an integer $\ge1$"),
    ),
    assumptions=(Assumption("the state starts at 0, means are over all tokens so far"),),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("one lost", "the eigenvalue 1 − ‖κ‖²/t", lambda: (_along(1 - n / t),)),
        Mutant("threshold shifted", "the threshold 2t instead of 2t − 1", lambda: _edges(2 * t)),
        Mutant("half the length", "κ bounded by half the largest length", lambda: (_centred_length(1),)),
        Mutant(
            "longer keys",
            "keys of squared length 46/16 claimed safe",
            lambda: _margin(Rational(46, 16), 2 * x**2 + Rational(23, 4) * x + 3),
        ),
        Mutant("safe at the edge", "λ = −1/2 claimed for the sharp history", lambda: (_attained("-1/2"),)),
        Mutant(
            "tame state",
            "a third state of −1",
            lambda: (_first_eight(["0", "3/2", "-1", *PRINTED_STATES[3:]]),),
        ),
    ),
    remark=(
        "The peak is a product of the |λ_t| up to about t = ‖κ‖²/2, so it rises steeply with the keys'"
        " length; but it is a peak: for fixed bounds on the data nothing diverges as t → ∞."
    ),
    counterexample=Counterexample(
        fails=(
            "An expansion of softmax, whose output stays in the hull of the values, is as harmless "
            "as softmax; the erase term is the delta rule's, and the delta rule is a contraction."
        ),
        believed="For unit keys it is true, and the decay $1-1/t$ looks like a safety margin.",
        catch=(
            r"The erase strength is $1/t$, not a gate, and $\kappa_t$ is not a unit key. Along "
            r"$\kappa_t$ the transition is $1-(1+\|\kappa_t\|^2)/t$, below $-1$ as soon as "
            r"$\|\kappa_t\|^2>2t-1$. The worst time is $t=3$."
        ),
        gap=(
            r"With keys $\pm6$ and values $\pm1$ the state is below $-1400000$ at $t=17$ (exactly a "
            "rational near $-1462489$), while softmax stays in $[-1,1]$."
        ),
        witness=(
            "three keys of squared length 45/16",
            "keys 0, 6, −6, 6, …, values 0, 1, −1, 1, …, eight tokens",
            "the same history over 40 tokens, read with query 6",
            "the state after token 17 of that history",
        ),
        smallest=(
            "The bound 45/16 on squared key lengths is proved sharp: below it nothing leaves [−1, "
            "1], and the search finds the time (3) and the keys that attain it. Among alternating "
            "whole keys ±a, 6 is the first whose state passes a million, and 4 the first whose state "
            "passes 1 (exhaustive for a = 1 … 6, 40 tokens)."
        ),
        repair=(
            r"Keys with $\|k\|^2\le\frac{45}{16}$ (sharp), or the substitute of least squares. On "
            r"bounded data the growth ends by itself once $t\ge2\max\|k\|^2$: it is transient, "
            "however large, and no divergence."
        ),
        repaired_by=("gdn.form-unstable", "gdn.least-squares-query"),
        search="counterexamples.gdn._search:unstable",
    ),
)
