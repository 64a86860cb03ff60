"""Linear attention and the delta rule are one gradient step on a correlation and on a squared error.

Column by column of the state: the objective is a sum over the value's coordinates, and each column of S
occurs in one of them only.
"""

from sympy import Expr, IndexedBase, Rational, Sum, Symbol, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, e, K = symbols("a e K")
value, beta, found = Symbol("v"), Symbol(r"\beta"), Symbol("o")
k, s, gradient, after = (IndexedBase(name) for name in ("k", "s", "d", "s'"))
IN_RANGE = ((1, a), (a, K))
SIZES = ({K: 2, a: 1}, {K: 3, a: 3})
read = Sum(k[e] * s[e], (e, 1, K))


def _gradient(title: str, objective: Expr, slope: Expr) -> Obligation:
    setting = Setting(nonempty=(K,), order=IN_RANGE, instances=SIZES)
    chain = Chain(title, setting, objective)
    return chain.differentiate("only the terms with s[a] depend on it", slope, s[a]).obligation()


def _step(title: str, slope: Expr, result: Expr) -> Obligation:
    setting = Setting((Definition("gradient", gradient[a], slope),), instances=SIZES)
    chain = Chain(title, setting, s[a] - beta * gradient[a])
    return chain.unfold("insert the gradient", result, "gradient").obligation()


def _reads_back(strength: int) -> Obligation:
    written = Definition("written", after[e], s[e] - beta * k[e] * (found - value), (e,))
    held = Definition("held", found, read)
    full = Hypothesis("full strength", beta * Sum(k[e] ** 2, (e, 1, K)), strength)
    setting = Setting((written, held), (full,), instances=SIZES)
    chain = Chain("reading the key after the write", setting, Sum(k[e] * after[e], (e, 1, K)))
    before = read - beta * Sum(k[e] ** 2, (e, 1, K)) * (found - value)
    chain = chain.unfold("insert the write", before, "written")
    chain = chain.use("β‖k‖² = 1", read - (found - value), **{"full strength": -(found - value)})
    return chain.unfold("what was held cancels", value, "held").obligation()


def parts() -> tuple[Part, ...]:
    """Both gradients, both steps, and reading back."""
    error = read - value
    return (
        Part(
            r"$\partial/\partial S_{ac}$ of $-\langle S^\top k,v\rangle$ is $-k_av_c$, so one step of size"
            r" $\beta$ gives"
            r" $S+\beta kv^\top$: linear attention.",
            (
                _gradient("the gradient of the correlation", -read * value, -k[a] * value),
                _step("one step on the correlation", -k[a] * value, s[a] + beta * k[a] * value),
            ),
        ),
        Part(
            r"$\partial/\partial S_{ac}$ of $\frac12\|S^\top k-v\|^2$ is $k_a(k^\top S-v^\top)_c$, so one"
            r" step gives"
            r" $S-\beta k(k^\top S-v^\top)$: the delta rule.",
            (
                _gradient("the gradient of the squared error", Rational(1, 2) * error**2, k[a] * error),
                _step("one step on the squared error", k[a] * error, s[a] - beta * k[a] * error),
            ),
        ),
        Part(
            r"If $\beta\|k\|^2=1$, reading $k$ after the delta rule's write returns $v$ exactly, whatever"
            r" the state"
            r" was.",
            (_reads_back(1),),
        ),
    )


CLAIM = Claim(
    id="linear.online-objectives",
    title="Linear attention and the delta rule are one gradient step on a correlation and on a squared error",
    statement=(
        r"One gradient step of size $\beta$ on $-\langle S^\top k,v\rangle$ gives $S+\beta kv^\top$; on"
        r" $\frac12\|S^\top k-v\|^2$ it gives $S-\beta k(k^\top S-v^\top)$. With $\beta\|k\|^2=1$ the latter"
        r" reads"
        r" $v$ at $k$ exactly."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="every K and V, all real states, keys, values and step sizes",
    variables=(
        Variable("S", r"state, $\mathbb{R}^{K\times V}$; $s$ is one of its columns"),
        Variable("k", r"\mathbb{R}^K"),
        Variable("v", r"one coordinate of the value, $\mathbb{R}$"),
        Variable(r"\beta", r"step size, $\mathbb{R}$"),
    ),
    assumptions=(Assumption("the objectives are sums over the columns of S, each in one term only"),),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "factor 2",
            "the gradient of the squared error with a factor 2",
            lambda: (_gradient("mutant", Rational(1, 2) * (read - value) ** 2, 2 * k[a] * (read - value)),),
        ),
        Mutant(
            "ascent",
            "a step up the correlation's slope",
            lambda: (_step("mutant", -k[a] * value, s[a] - beta * k[a] * value),),
        ),
        Mutant("no strength", "reading back at β‖k‖² = 0", lambda: (_reads_back(0),)),
    ),
    remark="The correlation has no minimum: without normaliser or decay the linear state grows for ever.",
)
