"""Where every intermediate result is a number of the format, every order of operations is exact.

A rounded operation whose exact result is a number of the format returns it. So, operation after operation,
whatever the order, computed results are the exact ones: forms that are equal in exact arithmetic are equal
bit for bit. For integers it is enough that sums of absolute values stay within 2^p; the entries of the state
grow by at most max|v| a token for keys ±e_i and ±e_i ± e_j, decays of 0 and 1 and strengths of 0 and 1.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, Format

i, n, t, chunk, tokens, start, value = symbols("i n t C T s v")
x, y, size, gap, above, below = (IndexedBase(name) for name in ("x", "y", "a", "h", "b", "d"))
computed_x, computed_y, computed_z, result, lost = symbols(r"\hat{x} \hat{y} \hat{z} \hat{r} e")
exact_x, exact_y, exact_z = symbols("x y z")
first, second, decay_i, decay_j, row_i, row_j = symbols(r"\kappa_i \kappa_j \alpha_i \alpha_j S_i S_j")
largest, least = IndexedBase("m"), symbols("B")


def operation(title: str, computed: Expr, exact: Expr, *, error: int = 0) -> Obligation:
    """A rounded operation on exact operands, whose exact result is a number of the format."""
    definitions = (
        Definition("rounded operation", result, computed + lost),
        Definition("x is exact", computed_x, exact_x),
        Definition("y is exact", computed_y, exact_y),
        Definition("z is exact", computed_z, exact_z),
        Definition("a number of the format is not rounded", lost, Integer(error)),
    )
    chain = Chain(title, Setting(definitions), result)
    chain = chain.unfold("exact operation and its error", computed + lost, "rounded operation")
    chain = chain.unfold("no error", computed, "a number of the format is not rounded")
    names = tuple(item.name for item in definitions[1:4])
    return chain.unfold("on exact operands", exact, *names).obligation()


def _operations() -> tuple[Obligation, ...]:
    return (
        operation("a sum", computed_x + computed_y, exact_x + exact_y),
        operation("a difference", computed_x - computed_y, exact_x - exact_y),
        operation("a product", computed_x * computed_y, exact_x * exact_y),
        operation("a fused sum", computed_x * computed_y + computed_z, exact_x * exact_y + exact_z),
    )


def partial_sums(sign: int, scale: int = 1) -> Obligation:
    """Σ a >= ±(the sum of any of the x), a_i >= |x_i|; y_i is x_i where i belongs to it, else 0."""
    room = Definition("a bounds what is added", gap[i], scale * size[i] - sign * y[i], free=(i,))
    setting = Setting((room,), nonnegative=(gap,), nonempty=(n,), instances=({n: 2}, {n: 3}))
    side = "above" if sign == 1 else "below"
    chain = Chain(f"a partial sum, bounded from {side}", setting, Sum(size[i], (i, 1, n)))
    after, rest = sign * Sum(y[i], (i, 1, n)), Sum(gap[i], (i, 1, n))
    chain = chain.unfold("what is left to the bound", after + rest, room.name)
    return chain.drop("it is not negative", after, rest).obligation()


def one_entry(sign: int = 1) -> Obligation:
    """Key κe_i, κ² = 1, strength 1: the row becomes κv."""
    unit = Hypothesis("square", first**2, 1)
    chain = Chain(
        "a key of one entry",
        Setting((), (unit,)),
        decay_i * row_i + first * (value - first * decay_i * row_i),
    )
    return chain.use("its square is 1", sign * first * value, square=-decay_i * row_i).obligation()


def two_entries(after: Expr = first * value - first * second * decay_j * row_j) -> Obligation:
    """Key κ_i e_i + κ_j e_j: row i becomes κ_i v − κ_i κ_j α_j S_j."""
    unit = Hypothesis("square", first**2, 1)
    read = first * decay_i * row_i + second * decay_j * row_j
    chain = Chain("a key of two entries", Setting((), (unit,)), decay_i * row_i + first * (value - read))
    return chain.use("the square of the first is 1", after, square=-decay_i * row_i).obligation()


def growth(rate: int = 1) -> Obligation:
    """A bound that grows by max|v| a token: s + t v."""
    goal = Induction("entries of the state", t, Integer(0), largest[t], start + t * value)
    base = Chain("before the first token", Setting((Definition("start", largest[0], start),)), largest[0])
    base = base.unfold("the initial state", goal.rhs.subs(t, 0), "start")
    more = Definition("one token", largest[t], largest[t - 1] + rate * value)
    setting = Setting((more, goal.hypothesis), instances=({t: 1}, {t: 4}))
    step = Chain("one token more", setting, largest[t]).unfold("at most max|v| more", more.rhs, "one token")
    return goal.obligation(base, step.unfold("the tokens before", goal.rhs, "induction hypothesis"))


def inner_sums(sign: int, factor: int = 2) -> Obligation:
    """C · 2 · B >= ±Σ x_i y_i for |x_i| <= 2 and |y_i| <= B, C products."""
    definitions = (
        Definition("x is at most 2", above[i], 2 - x[i], free=(i,)),
        Definition("x is at least −2", below[i], 2 + x[i], free=(i,)),
        Definition("y is at most B", size[i], least - y[i], free=(i,)),
        Definition("y is at least −B", gap[i], least + y[i], free=(i,)),
    )
    known = (above, below, size, gap)
    setting = Setting(definitions, nonnegative=known, nonempty=(chunk,), instances=({chunk: 2}, {chunk: 3}))
    side = "above" if sign == 1 else "below"
    chain = Chain(f"a sum of C products, bounded from {side}", setting, factor * chunk * least)
    ends = (above[i] * gap[i] + below[i] * size[i]) if sign == 1 else (above[i] * size[i] + below[i] * gap[i])
    after, rest = sign * Sum(x[i] * y[i], (i, 1, chunk)), Sum(ends / 2, (i, 1, chunk))
    chain = chain.unfold("products of slacks", after + rest, *(item.name for item in definitions))
    return chain.drop("they are not negative", after, rest).obligation()


SUMS = 4 * chunk**2 * (start + tokens * value)
"""C · 2 · 2C(s + Tv)."""


def within(label: str, term: Expr, largest_value: int, target: Format, length: int = 127) -> Obligation:
    """A bound at the largest sizes is at most 2^p."""
    values = {"C": "64", "T": str(length), "s": str(largest_value), "v": str(largest_value)}
    used = {name: values[name] for name in sorted(str(symbol) for symbol in term.free_symbols)}
    limit = str(2**target.precision + 1)
    return Obligation("inequality", label, "B", {"term": tree(term), "values": used, "below": limit})


def smaller_sizes() -> Obligation:
    """The bound grows with every size, so that the largest ones decide."""
    more_c, more_t, more_s, more_v = symbols("c t_0 s_0 v_0")
    wide, long = chunk + more_c, tokens + more_t
    known = (chunk, tokens, start, value, more_c, more_t, more_s, more_v)
    setting = Setting(nonnegative=known)
    larger = start + more_s + long * (value + more_v)
    chain = Chain("the bound at larger sizes", setting, 4 * wide**2 * larger)
    rest = (
        4 * (2 * chunk + more_c) * more_c * larger,
        4 * chunk**2 * (more_s + more_t * value + long * more_v),
    )
    return chain.drop("what the increments add", SUMS, *rest).obligation()


def orders(label: str, left: list[int], right: list[int], target: Format, *, agree: bool) -> Obligation:
    """An inner product over every order of its sums."""
    data = {
        "left": [str(item) for item in left],
        "right": [str(item) for item in right],
        "precision": target.precision,
        "min_exponent": target.min_exponent,
        "agree": agree,
    }
    return Obligation("summation-orders", label, "E", data)


def _fits() -> Obligation:
    """Seven numbers whose absolute values sum to 2^24, so that not even the largest partial sum is beyond."""
    terms = [2**23, -(2**22), 2**21 + 1, -(2**20), 2**19 - 1, 2**18, 2**18]
    return orders("binary32, absolute values that sum to 2^24", terms, [1] * 7, FLOAT32, agree=True)


def _beyond(*, agree: bool = False) -> Obligation:
    label = "binary32, absolute values that sum to 2^24 + 2"
    return orders(label, [2**24, 1, -1], [1] * 3, FLOAT32, agree=agree)


def _narrow() -> Obligation:
    left, right = [7, -7, 5, 2, -1, 3, 1], [2, 2, -2, 1, 7, 5, -6]
    return orders("bfloat16, seven products", left, right, BFLOAT16, agree=True)


OUTPUT = 2 * (start + tokens * value)
"""A sum of two entries of the state after T tokens."""


def parts() -> tuple[Part, ...]:
    """The lemma, sums, the state, sums inside a chunk, the sizes of the certifier, and witnesses."""
    return (
        Part(
            r"A sum, difference, product or fused multiply-add of exact operands, rounded, is exact if"
            r" its exact result is a number of the format. So by induction over the operations, if every"
            r" exact intermediate result is a number of the format, every computed one equals it,"
            r" whatever the order: forms with equal exact results agree bit for bit.",
            _operations(),
        ),
        Part(
            r"A sum of any of the numbers $x_i$ is between $\mp\sum|x_i|$: integers with"
            r" $\sum|x_i|\le2^p$ have no partial sum beyond $2^p$, in whatever order.",
            (partial_sums(1), partial_sums(-1)),
        ),
        Part(
            r"For strength 1 and keys $\pm e_i$ or $\pm e_i\pm e_j$ a row that is touched becomes $\pm v$, or"
            r" $\pm v$ and another row times $\pm1$ and its decay: integers that grow by at most $\max|v|$ a"
            r" token, so that no entry exceeds $s_T=\max|S_0|+T\max|v|$.",
            (one_entry(), two_entries(), growth()),
        ),
        Part(
            r"A sum of $C$ products of integers up to 2 with integers up to $2Cs_T$, the largest of the sums"
            r" inside a chunk of $C$ tokens, stays within $4C^2s_T$, which grows with every size.",
            (inner_sums(1), inner_sums(-1), smaller_sizes()),
        ),
        Part(
            r"At the certifier's largest sizes, $C=64$, $T=127$: $4C^2s_T\le2^{24}$ with $|v|,|S_0|\le7$; the"
            r" outputs, at most $2s_T$, are at most $2^{11}$ then, and at most $2^8$ with $|v|,|S_0|\le1$.",
            (
                within("sums in binary32", SUMS, 7, FLOAT32),
                within("outputs in binary16", OUTPUT, 7, FLOAT16),
                within("outputs in bfloat16", OUTPUT, 1, BFLOAT16),
            ),
        ),
        Part(
            r"Every order of 7 integers whose absolute values sum to $2^{24}$ is exact in binary32, and of 7"
            r" literal products in bfloat16, fused or not; with $2^{24}+2$, $(2^{24}+1)-1$ is $2^{24}-1$ and"
            r" $2^{24}+(1-1)$ is $2^{24}$.",
            (_fits(), _narrow(), _beyond()),
        ),
    )


CLAIM = Claim(
    id="kernel.integer-exact",
    title="Where every intermediate result is a number of the format, every order of operations is exact",
    statement=(
        r"If every exact intermediate result of a computation is a number of the format, the computed"
        r" results are the exact ones, whatever the rounding. Hence kernels of one definition, in any"
        r" order of operations, agree with it bit for bit on integers whose sums of absolute values stay"
        r" within $2^p$. Entries of the state are at most $s_T=\max|S_0|+T\max|v|$ for keys $\pm e_i$,"
        r" $\pm e_i\pm e_j$, decays of 0 and 1 and strengths of 0 and 1, and $4C^2s_T\le2^{24}$ for"
        r" $C\le64$, $T\le127$ and $|v|,|S_0|\le7$. Beyond $2^p$ two orders can differ."
    ),
    source="kernels",
    status=Status.NEW,
    scope="every number and order of operations; every K, V and T; the last two figures for the sizes stated",
    variables=(
        Variable("p", "precision of the format, all integers up to $2^p$ in size are numbers of it"),
        Variable("s_T", "bound on the entries of the state after T tokens"),
        Variable("C", "tokens of a chunk"),
        Variable(r"\kappa_i, \kappa_j", r"\{-1,1\}"),
    ),
    assumptions=(
        Assumption("a rounding returns every number of the format as it is; nothing overflows"),
        Assumption(
            "inside a chunk, entries of the triangular matrix are at most 2, entries of its inverse too"
            " (steps with |k|² ≤ 2 and β of 0 or 1 lengthen nothing), and what they multiply at most 2C s_T"
        ),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant(
            "rounded all the same",
            "a sum of which something is lost",
            lambda: (operation("a sum", computed_x + computed_y, exact_x + exact_y, error=1),),
        ),
        Mutant("larger than their sum", "twice the sum of sizes needed", lambda: (partial_sums(1, 2),)),
        Mutant("sign of the other row", "row i as κ_i v + κ_iκ_j α_j S_j", lambda: (_other_sign(),)),
        Mutant("twice max|v| a token", "the same bound for faster growth", lambda: (growth(2),)),
        Mutant("products up to 1", "C · B for products up to 2B", lambda: (inner_sums(1, 1),)),
        Mutant(
            "a token too many",
            "outputs in bfloat16 after 128 tokens",
            lambda: (within("outputs in bfloat16", OUTPUT, 1, BFLOAT16, 128),),
        ),
        Mutant("beyond the bound", "all orders agree at 2^24 + 2", lambda: (_beyond(agree=True),)),
    ),
    remark=(
        "The bound is sharp but for 1: a partial sum of size 2^p + 1 needs terms that sum to it, and the"
        " first integer that is no number of the format is 2^p + 1. Softmax attention has inputs of its"
        " own, on which weights are 0 or equal."
    ),
)


def _other_sign() -> Obligation:
    return two_entries(first * value + first * second * decay_j * row_j)
