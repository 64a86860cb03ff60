"""One unread score hides any output: attention that skips a query-key pair cannot be right on every input."""

from collections.abc import Callable
from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from counterexamples.softmax import _probers
from counterexamples.softmax._adversary import Algorithm, deceive
from verify.derive import Chain, Definition, Hypothesis, Minimum, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, k, c, d, n = symbols("j k c d N")
raised, top, own, value, mass, reading, rest, room = symbols("B M s v x X R u")
s, t, v, w, g, o, p, y = (IndexedBase(name) for name in ("s", "s'", "v", "w", "g", "o", "o'", "y"))
SIZES = ({n: 2, k: 1}, {n: 3, k: 2})


def _tangent() -> tuple[Obligation, ...]:
    """e^x >= 1 + x: the difference is y − 1 − ln y at y = e^x, which is at least 0."""
    z, x = symbols("z x")
    lemma = Minimum("ln z is at most z − 1", z, z - 1 - log(z), Integer(1), Integer(0), 1 / z)
    chain = Chain("e^x − 1 − x is z − 1 − ln z at z = e^x", Setting(), exp(x) - 1 - log(exp(x)))
    return lemma.obligation(), chain.rearrange("ln e^x = x", exp(x) - 1 - x).obligation()


def _sums(summand: Expr) -> tuple[Expr, Expr]:
    return Sum(summand, (j, 1, k - 1)), Sum(summand, (j, k + 1, n))


def _row(title: str, score: Expr, power: Expr, *definitions: Definition) -> Obligation:
    """A row's output as (X + e^s·v_k)/(x + e^s), X and x summed over all other tokens."""
    setting = Setting(definitions, nonempty=(n,), order=((1, k), (k, n)), instances=SIZES)
    up, down = exp(score) * v[j], exp(score)
    chain = Chain(title, setting, Sum(up, (j, 1, n)) / Sum(down, (j, 1, n)))
    (up_low, up_high), (low, high) = _sums(up), _sums(down)
    cut = (Sum(up, (j, 1, k)) + up_high) / (Sum(down, (j, 1, k)) + high)
    chain = chain.split("cut after token k", cut, n, k)
    one = exp(score.subs(j, k))
    apart = (up_low + one * v[k] + up_high) / (low + one + high)
    chain = chain.split("take token k out", apart, k, k - 1)
    (up_low, up_high), (low, high) = _sums(exp(s[j]) * v[j]), _sums(exp(s[j]))
    after = (up_low + power * v[k] + up_high) / (low + power + high)
    names = [definition.name for definition in definitions]
    return (chain.unfold("only score k was raised", after, *names) if names else chain).obligation()


def _rows() -> tuple[Obligation, Obligation]:
    changed = (
        Definition("raised score", t[k, k], raised, free=(k,)),
        Definition("earlier scores", t[j, k], s[j], free=(j, k), guards=((j, k - 1),)),
        Definition("later scores", t[j, k], s[j], free=(j, k), guards=((k, j - 1),)),
    )
    return _row("the row before", s[j], exp(s[k])), _row("the row after", t[j, k], exp(raised), *changed)


def _moved(sign: int) -> Obligation:
    """o' − o = (1 − Z/Z')(v − o) with Z = x + e^s and Z' = x + e^B."""
    before = (reading + exp(own) * value) / (mass + exp(own))
    after = (reading + exp(raised) * value) / (mass + exp(raised))
    factor = 1 - (mass + exp(own)) / (mass + exp(raised))
    chain = Chain("how far the output moves", Setting(nonnegative=(mass,)), after - before)
    return chain.rearrange("a multiple of the way to v", sign * factor * (value - before)).obligation()


def _total() -> Obligation:
    """N·e^M − Z >= 0."""
    below = Definition("room", w[j], top - s[j], free=(j,))
    excess = Definition("excess", g[j], exp(w[j]) - 1 - w[j], free=(j,))
    setting = Setting((excess, below), nonnegative=(w, g), nonempty=(n,), instances=({n: 2}, {n: 3}))
    chain = Chain(
        "N times the largest exponential minus Z", setting, n * exp(top) - Sum(exp(s[j]), (j, 1, n))
    )
    terms = Sum(exp(s[j]) * (g[j] + w[j]), (j, 1, n))
    chain = chain.unfold("factor out e^w − 1 = w + (e^w − 1 − w)", terms, "excess", "room")
    return chain.drop("every term is at least 0", Integer(0), terms).obligation()


def _factor(tokens: Expr) -> Obligation:
    """N·e^{M − B} − Z/Z' >= 0, where N·e^M = Z + R."""
    bound = Hypothesis("total", n * exp(top), mass + exp(own) + rest)
    setting = Setting((), (bound,), nonnegative=(mass, rest))
    chain = Chain(
        "what the factor lacks at most",
        setting,
        tokens * exp(top - raised) - (mass + exp(own)) / (mass + exp(raised)),
    )
    z = mass + exp(own)
    terms = rest * exp(-raised), z * mass * exp(-raised) / (mass + exp(raised))
    chain = chain.use("insert the total", sum(terms), total=exp(-raised))
    return chain.drop("no term is negative", Integer(0), *terms).obligation()


def _reached(lead: Expr) -> Obligation:
    """1 − N·e^{M − B} at B = M + ln(N/(1 − f)), f the fraction of the way wanted; u = 1 − f."""
    level = Definition("raised to", raised, top + lead)
    setting = Setting((level,), positive=(n, room))
    chain = Chain("the fraction of the way", setting, 1 - n * exp(top - raised))
    return chain.unfold("insert B", 1 - room, "raised to").obligation()


def _one_answer(factor: int) -> Obligation:
    """2‖y − o‖² + 2‖y − o'‖² >= ‖o' − o‖² in any width."""
    setting = Setting(nonempty=(d,), instances=({d: 1}, {d: 3}))
    start = Sum(factor * (y[c] - o[c]) ** 2 + factor * (y[c] - p[c]) ** 2, (c, 1, d))
    apart, middle = Sum((p[c] - o[c]) ** 2, (c, 1, d)), Sum((2 * y[c] - o[c] - p[c]) ** 2, (c, 1, d))
    chain = Chain("one answer to both inputs", setting, start)
    chain = chain.rearrange("the parallelogram law", apart + middle)
    return chain.drop("squares are not negative", apart, middle).obligation()


VALUES = [[1 if i == j else 0 for i in range(8)] for j in range(8)]


def _deceived(
    label: str, algorithm: Algorithm, change: Callable[[dict[str, Any]], None] | None = None
) -> Obligation:
    data = deceive(algorithm, VALUES, "3/4")
    if change is not None:
        change(data)
    return Obligation("unread-score", label, "E", data)


def _peeked(data: dict[str, Any]) -> None:
    data["read"] = [*data["read"], data["pair"]]


def _unraised(data: dict[str, Any]) -> None:
    data["second"] = data["first"]


def _too_far(data: dict[str, Any]) -> None:
    data["gap"] = "1"


def parts() -> tuple[Part, ...]:
    """How far the output moves, by how much, what one answer costs, and three algorithms deceived."""
    return (
        Part(
            r"Raising one score of a row from $s_k$ to $B$ moves its output by exactly"
            r" $o'-o=(1-Z/Z')(v_k-o)$, with $Z=\sum_je^{s_j}$ and $Z'=Z-e^{s_k}+e^B$, for every number of"
            r" tokens: before and after it is $(X+e^sv_k)/(x+e^s)$ with the same $X$ and $x$.",
            (*_rows(), _moved(1)),
        ),
        Part(
            r"If all scores were at most $M$, then $Z\le Ne^M$ and $1-Z/Z'\ge1-Ne^{-(B-M)}$: the output"
            r" moves by at least $(1-Ne^{-(B-M)})\|v_k-o\|$ for $B\ge M+\ln N$.",
            (*_tangent(), _total(), _factor(n)),
        ),
        Part(
            r"With $B=M+\ln(N/u)$ that is at least $(1-u)\|v_k-o\|$: every distance below $\|v_k-o\|$ is"
            r" reached.",
            (_reached(log(n / room)),),
        ),
        Part(
            r"An algorithm that reads fewer than $N^2$ of the $N^2$ scores leaves some pair unread, so it"
            r" returns one answer $y$ to both inputs, and $2\|y-o\|^2+2\|y-o'\|^2\ge\|o'-o\|^2$: on one of"
            r" them it is off by at least half the distance.",
            (_one_answer(2),),
        ),
        Part(
            r"Three algorithms deceived by program, $N=8$, each given two inputs that agree on all it read"
            r" and whose outputs are at least $3/4$ apart: a window of five keys, every key of a row but one"
            r" chosen adaptively, and all 64 pairs but one.",
            (
                _deceived("a window of five keys", _probers.window),
                _deceived("every key but one, chosen adaptively", _probers.greedy),
                _deceived("all 64 pairs but one", _probers.all_but_one),
            ),
        ),
    )


CLAIM = Claim(
    id="softmax.needle",
    title="One unread score hides any output: attention that skips a query-key pair cannot be right on every"
    " input",
    statement=(
        r"Let a deterministic algorithm learn about the $N^2$ scores only by reading them one by one,"
        r" adaptively or not, and let it read fewer than $N^2$. Then some pair $(i,j)$ stays unread; raising"
        r" that score from at most $M$ to $B$ moves the exact output of row $i$ by at least"
        r" $(1-Ne^{-(B-M)})\|v_j-o_i\|$ while the algorithm answers as before. So for every $c<\|v_j-o_i\|$"
        r" there are two inputs that agree on all that was read and whose outputs differ by more than $c$; on"
        r" one of them the algorithm is off by $c/2$."
    ),
    source="article A, section 5; article C",
    status=Status.AS_PRINTED,
    scope="every N ≥ 1 and every value width; scores of any size, temperature 1",
    variables=(
        Variable("N", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores of one row, $\mathbb{R}^N$, all at most $M$"),
        Variable("B", r"the raised score, $\mathbb{R}$"),
        Variable("v_j", r"values, $\mathbb{R}^d$"),
        Variable("u", r"fraction of the way that may be missed, $(0,1)$"),
    ),
    assumptions=(
        Assumption("the input is adversarial: no distribution of the scores is assumed, none is sampled"),
        Assumption(
            "information about the scores comes through reading single pairs alone (no keys or queries,"
            " no bound over blocks, no index), and scores are independent of one another and unbounded"
        ),
        Assumption("the algorithm is deterministic; a randomised one is treated at fixed random bits"),
        Assumption("the value of some unread token differs from its row's output"),
        Assumption("values may be known in full; only scores are hidden"),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("sign flipped", "an output that moves away from the raised token", lambda: (_moved(-1),)),
        Mutant("lost N", "a bound without the number of tokens", lambda: (_factor(Integer(1)),)),
        Mutant("wrong level", "a lead of ln(u) alone", lambda: (_reached(log(room)),)),
        Mutant(
            "peeked",
            "the raised pair among those read",
            lambda: (_deceived("peeked", _probers.window, _peeked),),
        ),
        Mutant(
            "unraised", "the same input twice", lambda: (_deceived("unraised", _probers.window, _unraised),)
        ),
        Mutant(
            "too far",
            "a gap beyond the reach of any score",
            lambda: (_deceived("too far", _probers.window, _too_far),),
        ),
    ),
    remark="Subquadratic attention therefore needs an assumption on the inputs or information beyond single"
    " scores; low-dimensional keys give both, so nothing here excludes algorithms that use q and k"
    " themselves.",
    counterexample=Counterexample(
        fails=(
            "An algorithm can compute softmax attention on every input while it reads fewer than all "
            "$N^2$ scores."
        ),
        believed="Nearly all weights are tiny, so nearly all scores seem not to matter.",
        catch=(
            "Which weights are tiny is known only once all scores are. Raise a single unread score: "
            "the algorithm sees the same answers and returns the same output, while the exact output "
            "of that row moves to that token's value."
        ),
        gap=(
            r"Any distance below $\|v_j-o_i\|$; for the three algorithms at least $\frac34$, and the "
            "one answer is off by 0.886360 on one of the two inputs."
        ),
        witness=(
            "a window of five keys",
            "every key but one, chosen adaptively",
            "all 64 pairs but one",
        ),
        smallest=(
            "One unread pair is the fewest, and it is enough (proved for every N). The eight tokens "
            "are a choice; the adversary makes the inputs for any algorithm that reads scores one by "
            "one."
        ),
        repair=(
            "An assumption on the inputs, or information about scores that comes by another way than "
            "reading them (a bound over blocks of keys, an index, a distribution)."
        ),
        repaired_by=("sparse.gap-bound", "sparse.bucket-threshold", "sparse.indexer-regret"),
        search="counterexamples.softmax._search:needles",
    ),
)
