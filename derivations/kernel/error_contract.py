"""A recurrent kernel errs by an explicit multiple of the unit roundoff, linear in T and in K.

One rounded step is compared with the exact step from the same computed state; the difference of the states
before is carried on by the exact step, which does not lengthen it. Magnitudes carry K V τ with them, so that
every rounding is one factor 1 + u: the D roundings on the way through the read and the four after it
telescope, the decay and the storing add a factor each.
"""

from fractions import Fraction

from derivations.kernel import _runs as runs
from derivations.kernel import _steps as steps
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part
from verify.numbers.formats import BFLOAT16, FLOAT32

UNIT, SMALL, LARGE = Fraction(1), Fraction(1, 16), Fraction(4)


def _attains(data: runs.Run, label: str, share: str) -> Obligation:
    return runs.within(data | {"attains": share}, label)


def _ordinary() -> tuple[Obligation, ...]:
    """Runs on drawn inputs: formats, orders, widths and strengths vary."""
    single, half = runs.drawn(4, 2, 16, 1, 1, UNIT), runs.drawn(8, 2, 12, 2, 2, UNIT)
    mixed, narrow = runs.drawn(5, 2, 24, 1, 3, LARGE), runs.drawn(3, 2, 8, 2, 4, SMALL)
    return (
        runs.within(
            runs.run(single["state"], single["steps"], runs.in_turn(4)),
            "float32, K = 4, V = 2, T = 16, products added in turn",
        ),
        runs.within(
            runs.run(half["state"], half["steps"], runs.in_pairs(0, 8), BFLOAT16),
            "bfloat16, K = 8, V = 2, T = 12, β up to 2, products added in pairs",
        ),
        runs.within(
            runs.run(mixed["state"], mixed["steps"], runs.in_turn(5), FLOAT32, BFLOAT16, fused=True),
            "float32 with fused sums, stored in bfloat16, K = 5, V = 2, T = 24",
        ),
        runs.within(
            runs.run(narrow["state"], narrow["steps"], runs.in_pairs(0, 3), runs.NARROW),
            "4 bits with underflow, K = 3, V = 2, T = 8, β up to 2",
        ),
    )


def parts() -> tuple[Part, ...]:
    """The steps of the derivation, then runs that come near the contract."""
    return (
        Part(
            r"An error that is carried through $n$ roundings of relative size $u$, each of which adds $u$"
            r" times a magnitude $A$, is $((1+u)^n-1)A$: so it is for each product of an inner product of $K$"
            r" terms, in any order, with $n\le K$; in halves of halves $n\le1+\log_2K$.",
            (steps.in_a_row(),),
        ),
        Part(
            r"Reading at the key after decaying errs by $((1+u)^D-1)(1+u_d)$, and the four operations after"
            r" it (difference, $\beta$, product, sum) by $u(1+u)^{D+i}(1+u_d)$, $i=0,\dots,3$: together"
            r" $(1+u)^{D+4}(1+u_d)-(1+u_d)$ of what is written.",
            (steps.collected(),),
        ),
        Part(
            r"For $\beta\ge0$ and $\beta\|k\|^2\le2$ the exact step never lengthens an error:"
            r" $\|x\|^2-\|(I-\beta kk^\top)x\|^2=\beta(2-\beta\|k\|^2)(k^\top x)^2\ge0$, whatever the length"
            r" of the key.",
            (steps.contraction(),),
        ),
        Part(
            r"Errors that grow by $E_t=(1+r)E_{t-1}+L$ from $E_0=0$ are $(L/r)((1+r)^t-1)$, and"
            r" $(1+r)^t\le1/(1-tr)$ where $tr<1$: at most $tL/(1-tr)$, linear in $t$.",
            (steps.accumulated(), steps.linear()),
        ),
        Part(
            r"Neither $T$ nor $D$ can be left out: there are runs whose error exceeds a fifth of the contract"
            r" after $1$, $8$ and $32$ steps, and, at $K=D=64$, after one. Runs on drawn inputs err by much"
            r" less.",
            (
                *(
                    _attains(
                        runs.stagnating_state(count),
                        f"a state in bfloat16 that should decay and does not, T = {count}",
                        "1/5",
                    )
                    for count in (1, 8, 32)
                ),
                _attains(
                    runs.stagnating_sum(64), "an inner product in bfloat16 that stagnates, K = 64", "1/5"
                ),
                runs.within(runs.vanishing_state(), "a subnormal state that vanishes"),
                *_ordinary(),
            ),
        ),
    )


CLAIM = Claim(
    id="kernel.error-contract",
    title="A recurrent kernel errs by an explicit multiple of the unit roundoff, linear in T and in K",
    statement=(
        r"Let $S_t=\mathrm{Diag}(a_t)S_{t-1}+\beta_tk_t(v_t-S_{t-1}^\top\mathrm{Diag}(a_t)k_t)^\top$ and"
        r" $o_t=S_t^\top q_t$, with $0\le a_{t,i}\le\alpha_t$, $\|k_t\|\le\kappa_t$, $0\le\beta_t\le b_t$,"
        r" $\beta_t\|k_t\|^2\le1+g_t$, $\|S_t\|_F\le m_t$ and $\kappa_t,b_t,g_t\ge1$. Let a kernel decay,"
        r" read, subtract, multiply by $\beta$ and by $k$, add and store in this order, every operation with"
        r" $|y-x|\le u(|x|+\tau)$ for its exact result $x$ ($u_d$ for the decay, $u_s$ for storing the state,"
        r" $u_o$ for the output), inner products in any order, fused or not, in which a product meets at most"
        r" $D$ roundings, its own included: at most $K$ in every order. With"
        r" $\Gamma=(1+u)^{D+4}(1+u_d)(1+u_s)-1$ and $X_t=\alpha_t(m_{t-1}+E_{t-1})+KV\tau$, its states and"
        r" outputs satisfy $\|\hat S_t-S_t\|_F\le E_t$ for"
        r" $E_t=g_t\alpha_tE_{t-1}+\Gamma(g_tX_t+b_t\kappa_t(\|v_t\|+\kappa_tX_t))$, and"
        r" $\|\hat o_t-o_t\|\le\|q_t\|E_t+((1+u)^D(1+u_o)-1)(\|q_t\|(m_t+E_t)+KV\tau)$. With $\alpha=g=1$,"
        r" constant $m$, $\kappa$, $b$, $\|v_t\|\le v$, $c=1+b\kappa^2$ and $T\Gamma c<1$ the error is at"
        r" most $T\Gamma(c(m+KV\tau)+b\kappa v)/(1-T\Gamma c)$. For $\alpha\le1$ and $\beta\|k\|^2\le2$,"
        r" $\|S_t\|_F\le\|S_0\|_F+\kappa\sum_{i\le t}\beta_i\|v_i\|$. With $n=(D+4)u+u_d+u_s<1$,"
        r" $\Gamma\le n/(1-n)$. Rounding to nearest has $u=2^{-24}$ in binary32, $2^{-8}$ in bfloat16, and"
        r" $\tau=2^{-126}$."
    ),
    source="new",
    status=Status.NEW,
    scope="every K ≥ 1, V and T; the recurrent form of DeltaNet, GDN and KDA",
    variables=(
        Variable("u,u_d,u_s,u_o", "relative errors of roundings, at least 0; 0 where nothing is rounded"),
        Variable(r"\tau", r"at least 0; the smallest normal number, or that over $u$ where subnormals flush"),
        Variable("K,V,T", "key width, value width, tokens"),
        Variable("D", "depth of the inner products, $1\\le D\\le K$"),
        Variable("S_t,\\hat S_t", r"exact and computed state, $\mathbb{R}^{K\times V}$"),
        Variable("E_t", r"bound of the error, from $\|\hat S_0-S_0\|_F\le E_0$"),
        Variable("a,k,v,\\beta,q", "as the kernel holds them: decays, keys, values, strengths, queries"),
    ),
    assumptions=(
        Assumption("no operation overflows"),
        Assumption(
            "a, k, v, β and q are the numbers the kernel holds; where a is computed, as exp of a gate is, its"
            " relative error is part of u_d"
        ),
        Assumption("operations round one result each: not the aligned sums of tensor cores"),
        Assumption(
            "the steps derived here compose, by the triangle inequality and Cauchy and Schwarz: the proof for"
            " Coq",
            cited=True,
        ),
    ),
    asked="KB",
    parts=parts,
    mutants=(
        Mutant(
            "no T",
            "the contract of one step for eight",
            lambda: (runs.within(runs.stagnating_state(8), "mutant", steps=1),),
        ),
        Mutant(
            "no K",
            "the contract of one product for 64",
            lambda: (runs.within(runs.stagnating_sum(64), "mutant", depth=1),),
        ),
        Mutant(
            "no storing",
            "the contract of float32 for a state kept in bfloat16",
            lambda: (runs.within(runs.stagnating_state(8), "mutant", state="0"),),
        ),
        Mutant("no underflow", "τ = 0", lambda: (runs.within(runs.vanishing_state(), "mutant", tiny="0"),)),
        Mutant("two roundings", "an error carried by 1 + 2u", lambda: (steps.in_a_row(2 * steps.u),)),
        Mutant("three operations", "one of the four forgotten", lambda: (steps.collected(3),)),
        Mutant("β‖k‖² up to 3", "a contraction claimed too far", lambda: (steps.contraction(3),)),
        Mutant("errors cancel", "E[t] = (1 + r) E[t − 1] − L", lambda: (steps.accumulated(-1),)),
        Mutant("first order", "a room of r instead of r²", lambda: (steps.linear(1),)),
    ),
    remark=(
        "The decays and strengths of the data enter step by step: where states decay, so does the bound. Kept"
        " in bfloat16 a state errs by 2^-8 of itself each step, and a decay of less than half of that is"
        " rounded away for good: the contract is then as large as the states, and so is the error. Chunked"
        " forms are not covered."
    ),
)
