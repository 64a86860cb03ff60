"""A state passed on at any cut gives what the run without the cut gives.

Steps S ↦ A S + B compose (semigroup.affine), so the update of the steps up to a cut followed by that of the
steps after it is the update of all of them: by induction, entry by entry, whatever A and B are. A piece that
starts from the passed state makes the same steps, so all that comes after the cut is the same; in rounded
arithmetic as well, for a rounded step, too, is a function of the state it is given.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.kernel._pieces import in_pieces
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part
from verify.numbers.formats import BFLOAT16, FLOAT32

m, r, t, j, a, b, c, e, f, K = symbols("m r t j a b c e f K")
A, B, P, R, S, X, q, o, y = (IndexedBase(name) for name in ("A", "B", "P", "R", "S", "X", "q", "o", "y"))


def over(left: Expr, right: Expr) -> Sum:
    """Σ over the K channels e."""
    return Sum(left * right, (e, 1, K))


def _earlier_applied(right: Expr) -> Sum:
    """Σ over the K channels f."""
    return Sum(A[t, a, f] * right, (f, 1, K))


FREE, GUARD = (j, a, b), ((j, t - 2),)
MORE = (
    Definition("one more factor", P[j, t, a, b], _earlier_applied(P[j, t - 1, f, b]), FREE, GUARD),
    Definition(
        "one more update", R[j, t, a, c], _earlier_applied(R[j, t - 1, f, c]) + B[t, a, c], (j, a), GUARD
    ),
)
NAMES = tuple(item.name for item in MORE)


def _inside(first: Expr) -> tuple[Setting, Setting]:
    """Settings of the first step after ``first``, and of a later one."""
    one = (
        Definition("a single factor", P[first, first + 1, a, b], A[first + 1, a, b], (a, b)),
        Definition("a single update", R[first, first + 1, a, c], B[first + 1, a, c], (a,)),
    )
    sizes = {K: 2, a: 1, b: 2, c: 1}
    base = Setting(one, instances=({m: 0, r: 2} | sizes,))
    later = ({m: 0, r: 1, t: 3} | sizes, {m: 1, r: 3, t: 6} | sizes)
    step = Setting(MORE, order=((m + 1, r), (first + 2, t)), nonempty=(K,), instances=later)
    return base, step


def _with(setting: Setting, *more: Definition) -> Setting:
    return Setting(
        (*more, *setting.definitions),
        order=setting.order,
        nonempty=setting.nonempty,
        instances=setting.instances,
    )


def update() -> Obligation:
    """S[t] = P[m, t] S[m] + R[m, t] after the first step of a run."""
    rhs = over(P[m, t, a, e], S[m, e, c]) + R[m, t, a, c]
    goal = Induction("a run as one update", t, m + 1, S[t, a, c], rhs, (a,))
    at_first, later = _inside(m)
    first = Definition("step", S[m + 1, a, c], over(A[m + 1, a, e], S[m, e, c]) + B[m + 1, a, c])
    base = Chain("the first step", _with(at_first, first), S[m + 1, a, c])
    base = base.unfold("is its own update", rhs.subs(t, m + 1), "step", "a single factor", "a single update")
    next_ = Definition("step", S[t, a, c], _earlier_applied(S[t - 1, f, c]) + B[t, a, c])
    chain = Chain("one more step", _with(later, next_, goal.hypothesis), S[t, a, c])
    chain = chain.unfold("by definition", next_.rhs, "step")
    return goal.obligation(base, chain.unfold("the run so far", rhs, "induction hypothesis", *NAMES))


def product() -> Obligation:
    """P[m, t] = P[r, t] P[m, r] for m < r < t."""
    rhs = over(P[r, t, a, e], P[m, r, e, b])
    goal = Induction("factors compose at any cut", t, r + 1, P[m, t, a, b], rhs, (a,))
    at_first, later = _inside(r)
    joined = Definition("joins", P[m, r + 1, a, b], over(A[r + 1, a, e], P[m, r, e, b]))
    base = Chain("one step after the cut", _with(at_first, joined), P[m, r + 1, a, b])
    base = base.unfold("one more factor", rhs.subs(t, r + 1), "joins", "a single factor")
    chain = Chain("one more step", _with(later, goal.hypothesis), P[m, t, a, b])
    chain = chain.unfold("one more factor", _earlier_applied(P[m, t - 1, f, b]), NAMES[0])
    return goal.obligation(base, chain.unfold("the factors so far", rhs, "induction hypothesis", NAMES[0]))


def shift(cut: Expr = r) -> Obligation:
    """R[m, t] = P[r, t] R[m, r] + R[r, t] for m < r < t."""
    rhs = over(P[r, t, a, e], R[m, cut, e, c]) + R[r, t, a, c]
    goal = Induction("updates compose at any cut", t, r + 1, R[m, t, a, c], rhs, (a,))
    at_first, later = _inside(r)
    joined = Definition("joins", R[m, r + 1, a, c], over(A[r + 1, a, e], R[m, r, e, c]) + B[r + 1, a, c])
    base = Chain("one step after the cut", _with(at_first, joined), R[m, r + 1, a, c])
    base = base.unfold("one more update", rhs.subs(t, r + 1), "joins", "a single factor", "a single update")
    chain = Chain("one more step", _with(later, goal.hypothesis), R[m, t, a, c])
    chain = chain.unfold("one more update", _earlier_applied(R[m, t - 1, f, c]) + B[t, a, c], NAMES[1])
    return goal.obligation(base, chain.unfold("the updates so far", rhs, "induction hypothesis", *NAMES))


def piece(start: Expr = S[r, a, c], *, skipped: int = 0, rounding: int = 0) -> Obligation:
    """X starts from S[r] and makes the same steps, rounding alike: X[t] = S[t] for every t >= r."""
    title = "a piece in rounded arithmetic" if rounding else "a piece from the passed state"
    goal = Induction(title, t, r, X[t, a, c], S[t, a, c], (a,))
    passed = Definition("passed on", X[r, a, c], start)
    base = Chain("at the cut", Setting((passed,), instances=({r: 2, a: 1, c: 1},)), X[r, a, c])
    base = base.unfold("the piece starts from it", S[r, a, c], "passed on")
    taken, lost, again = t - skipped, rounding * o[t, a, c], rounding * y[t, a, c]
    steps = (
        Definition("step of X", X[t, a, c], over(A[taken, a, e], X[t - 1, e, c]) + B[taken, a, c] + again),
        Definition("step of S", S[t, a, c], over(A[t, a, e], S[t - 1, e, c]) + B[t, a, c] + lost),
        Definition("equal states round alike", y[t, a, c], o[t, a, c]),
    )
    sizes = ({r: 1, t: 2, a: 1, c: 1, K: 2}, {r: 1, t: 4, a: 2, c: 1, K: 3})
    setting = Setting((*steps, goal.hypothesis), order=((r + 1, t),), nonempty=(K,), instances=sizes)
    chain = Chain("one more step", setting, X[t, a, c]).unfold("by definition", steps[0].rhs, "step of X")
    alike = ("equal states round alike",) if rounding else ()
    same = chain.unfold("from the same state", steps[1].rhs, "induction hypothesis", *alike)
    return goal.obligation(base, same.unfold("the same step", S[t, a, c], "step of S"))


def outputs() -> Obligation:
    """Equal states read alike."""
    read = Definition("read", o[t, c], Sum(q[t, a] * S[t, a, c], (a, 1, K)))
    equal = Definition("the piece's state", X[t, a, c], S[t, a, c], (a,))
    setting = Setting((read, equal), nonempty=(K,), instances=({t: 2, c: 1, K: 2},))
    chain = Chain("the output of a piece", setting, Sum(q[t, a] * X[t, a, c], (a, 1, K)))
    return chain.unfold("reads the same state", o[t, c], "the piece's state", "read").obligation()


def parts() -> tuple[Part, ...]:
    """Composition at a cut, the run in pieces, its outputs, and literal runs."""
    return (
        Part(
            r"With $P_{m\to t}$ and $R_{m\to t}$ built up step by step, $S_t=P_{m\to t}S_m+R_{m\to t}$,"
            r" and for every cut $m<r<t$: $P_{m\to t}=P_{r\to t}P_{m\to r}$ and $R_{m\to t}=P_{r\to t}R_{m\to"
            r" r}+R_{r\to t}$.",
            (update(), product(), shift()),
        ),
        Part(
            r"A piece that starts from $S_r$ after token $r$ has the state $S_t$ after every token $t\ge"
            r" r$, so also its outputs; by induction on the number of pieces, for every way to cut.",
            (piece(), outputs()),
        ),
        Part(
            r"In rounded arithmetic as well, whatever the rounding, if a state is passed on as it is:"
            r" then the piece rounds equal numbers alike.",
            (piece(rounding=1),),
        ),
        Part(
            r"On 5 literal steps of the delta recurrence ($K=3$, $V=2$, decays, $\beta$ up to 2) all 15"
            r" ways to cut them give the outputs and the last state of the whole run, in exact numbers"
            r" and, bit for bit, in binary32. With states passed on in bfloat16 none of the 15 does.",
            (
                in_pieces("exact numbers"),
                in_pieces("binary32", FLOAT32),
                in_pieces("binary32, states passed on in bfloat16", FLOAT32, BFLOAT16, differs=True),
            ),
        ),
    )


CLAIM = Claim(
    id="kernel.split",
    title="A state passed on at any cut gives what the run without the cut gives",
    statement=(
        r"For steps $S_t=A_tS_{t-1}+B_t$ (KDA, GDN, the delta rule, linear attention) and every cut"
        r" $m<r<t$, the update of the tokens up to $t$ is that of the tokens after $r$ after that of"
        r" those before; a run in any number of pieces, each from the state that the one before passed"
        r" on, has the states and outputs of the whole run. The same bits in rounded arithmetic, if steps"
        r" round alike and states are passed on unrounded; not if they are rounded where they are passed on."
    ),
    source="kernels",
    status=Status.NEW,
    scope="every K, V, number of tokens and way to cut; any matrices A and B; any rounding",
    variables=(
        Variable("m, r, t", r"tokens, integers with $m<r<t$; the cut is after token $r$"),
        Variable("A_t", r"\mathbb{R}^{K\times K}"),
        Variable("B_t", r"\mathbb{R}^{K\times V}"),
        Variable(r"P_{m\to t}, R_{m\to t}", r"product of $A_{m+1},\dots,A_t$, and the state they make of 0"),
    ),
    assumptions=(
        Assumption("the rounding errors of a step depend on nothing but the state and the token it is given"),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("cut a token early", "R up to the token before the cut", lambda: (shift(r - 1),)),
        Mutant("state forgotten", "a piece that starts from 0", lambda: (piece(Integer(0)),)),
        Mutant(
            "a token late", "a piece that makes the step of the token before", lambda: (piece(skipped=1),)
        ),
        Mutant(
            "forgotten in numbers",
            "literal pieces that start from 0",
            lambda: (in_pieces("exact numbers", forget=True),),
        ),
        Mutant(
            "rounded where it is passed on",
            "the same bits although states are passed on in bfloat16",
            lambda: (in_pieces("binary32, states passed on in bfloat16", FLOAT32, BFLOAT16),),
        ),
    ),
    remark=(
        "A run whose states are rounded where they are passed on is one of those that"
        " kernel.error-contract bounds: a number may count as a rounding of itself, so that storing may"
        " round at the cuts alone. A kernel that orders its sums by chunk may give other bits when a cut"
        " moves its chunks; it stays within the contract."
    ),
)
