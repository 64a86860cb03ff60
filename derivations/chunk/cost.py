"""What chunked linear attention multiplies: 2Td² for the state, 2TCd for the scores, C² kept in between.

Multiplications of one head of width d over T = nC tokens in n chunks of C. Per chunk the state is read and
written once, Cd² each, and every pair of tokens inside the chunk costs d for its score and d for its value;
with a causal mask only the pairs j ≤ i need to be done.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

C, T, d, n, c, i, j = symbols("C T d n c i j")
pairs = IndexedBase("p")
TOKENS = Definition("tokens", T, n * C)
SIZES = ({n: 2, C: 3}, {n: 4, C: 1})


def _over_chunks(title: str, work: Expr, total: Expr) -> Obligation:
    setting = Setting((TOKENS,), nonempty=(n, C), instances=SIZES)
    chain = Chain(title, setting, Sum(work, (c, 1, n)))
    return chain.unfold("n chunks alike, T = nC", total, "tokens").obligation()


def _inside(total: Expr) -> Obligation:
    setting = Setting(nonempty=(C,), instances=({C: 2}, {C: 3}))
    chain = Chain("scores and values inside one chunk, no mask", setting, Sum(2 * d, (j, 1, C), (i, 1, C)))
    return chain.rearrange("C² pairs", total).obligation()


def _causal_pairs(rhs: Expr) -> Obligation:
    """Pairs j ≤ i ≤ C, counted row by row."""
    goal = Induction("pairs under a causal mask", C, Integer(0), pairs[C], rhs)
    none = Definition("no token", pairs[0], Integer(0))
    base = Chain("no token", Setting((none,)), pairs[0]).unfold("no pair", rhs.subs(C, 0), "no token")
    row = Definition("last row", pairs[C], pairs[C - 1] + C)
    setting = Setting((row, goal.hypothesis), order=((1, C),), instances=({C: 2}, {C: 4}))
    step = Chain("one token more", setting, pairs[C])
    step = step.unfold("its row has C pairs", row.rhs, "last row")
    return goal.obligation(base, step.unfold("the rows before", rhs, "induction hypothesis"))


def _compare(label: str, claim: str) -> Obligation:
    text = f"""(set-logic QF_NRA)
(declare-const t Real)(declare-const c Real)(declare-const d Real)
(assert (and (>= t 1.0) (>= c 1.0) (>= d 1.0)))
(assert (not {claim}))
(check-sat)
"""
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"})


def _balance(larger: str) -> Obligation:
    claim = f"(= (< (* 2.0 t c d) (* 2.0 t d d)) (< c {larger}))"
    return _compare("the scores cost less than the state exactly for C < d", claim)


def _counted(tokens: int, chunk: int, width: int, wrong: int = 0) -> Obligation:
    """The formulas at one size, against multiplications done one by one."""
    data = {
        "tokens": tokens,
        "chunk": chunk,
        "width": width,
        "state": 2 * tokens * width**2,
        "scores": 2 * tokens * chunk * width + wrong,
        "causal": tokens * (chunk + 1) * width,
        "kept": chunk**2,
        "printed": "",
    }
    label = f"T = {tokens}, C = {chunk}, d = {width}, counted"
    return Obligation("operation-count", label, "E", data)


def _signs_balance() -> Obligation:
    """2td in powers of t − 1 ≥ 0 and d − 1 ≥ 0, times d − c or c − d."""
    case = (term(3), *(term(*places, 4, times="2.0") for places in ((), (0,), (2,), (0, 2))))
    return contradiction(_balance("d"), case, case)


def parts() -> tuple[Part, ...]:
    """State work, score work, the mask, and where they balance."""
    return (
        Part(
            r"Per chunk reading the state costs $Cd^2$ and writing it $Cd^2$; over all chunks $2Td^2$,"
            r" whatever $C$.",
            (_over_chunks("work on the state", 2 * C * d**2, 2 * T * d**2),),
        ),
        Part(
            r"Per chunk the $C^2$ pairs cost $2d$ each; over all chunks $2TCd$. The $C^2$ scores of one"
            r" chunk are the"
            r" intermediate that is kept.",
            (_inside(2 * C**2 * d), _over_chunks("work on the scores", 2 * C**2 * d, 2 * T * C * d)),
        ),
        Part(
            r"Under a causal mask a chunk has $\frac12C(C+1)$ pairs, so the score work can be done in"
            r" $T(C+1)d$.",
            (
                _causal_pairs(Rational(1, 2) * C * (C + 1)),
                _over_chunks("work on the scores, causal", C * (C + 1) * d, T * (C + 1) * d),
            ),
        ),
        Part(
            r"The scores cost less than the state exactly for $C<d$.",
            (_balance("d"), _signs_balance()),
        ),
        Part(
            r"Counted one by one, the multiplications are those of the formulas for $T=24$, $d=5$ and"
            r" $C=1,4,24$.",
            tuple(_counted(24, chunk, 5) for chunk in (1, 4, 24)),
        ),
    )


CLAIM = Claim(
    id="chunk.cost",
    title="What chunked linear attention multiplies: 2Td² for the state, 2TCd for the scores",
    statement=(
        r"Linear attention of one head, width $d$ for keys and values, over $T=nC$ tokens in chunks of $C$"
        r" takes $2Td^2$"
        r" multiplications for reading and writing the state and $2TCd$ for scores and values inside chunks"
        r" ($T(C+1)d$ if a"
        r" causal mask skips what it hides), and keeps $C^2$ scores; the two parts balance at $C=d$."
    ),
    source="article D",
    status=Status.AS_PRINTED,
    scope="every C, n, d; multiplications of matrix products only",
    variables=(
        Variable("C", "tokens per chunk, an integer ≥ 1"),
        Variable("n", "number of chunks, an integer ≥ 1"),
        Variable("d", "width of keys and values"),
        Variable("p_C", "pairs j ≤ i ≤ C"),
    ),
    assumptions=(
        Assumption("the chunk size divides T; no normaliser, decay or erasing"),
        Assumption(
            "dense products, counted by multiplications; the first chunk reads the zero state all the same"
        ),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant(
            "chunk size squared",
            "the score work with C² over all tokens",
            lambda: (_over_chunks("mutant", 2 * C**2 * d, 2 * T * C**2 * d),),
        ),
        Mutant("pairs", "C² pairs under the mask", lambda: (_causal_pairs(C**2),)),
        Mutant("one too many", "a count one too high", lambda: (_counted(24, 4, 5, wrong=1),)),
        Mutant("balance", "the balance at 2d", lambda: (_balance("(* 2.0 d)"),)),
    ),
    remark="The formulas are the article's; its four tables are not in the stored copy, so they are not"
    " reproduced here.",
)
