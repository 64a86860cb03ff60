"""Tensor cores align, truncate and add: an error bound for their sums, and where γ_n fails for them.

All products and the addend are cut toward zero to multiples of one grid step, 2^-f of the largest power of
two among them, then added exactly, and the sum is cut to the precision of the result. Each cut term is off
by less than the grid step, the result by less than the share 2^(1 − p) of the sum. Errors of steps in a row
add.
"""

from derivations.kernel import _aligned as model
from derivations.kernel._aligned import instance, product
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

ZERO = product("0", 0)


def _four(result: str = "1", *exceeds: int) -> Obligation:
    """Four products just below a grid step vanish beside 1."""
    label = "f = 23: 1 + 4 products of almost 2^-23"
    return instance(label, 23, [[product("2047/1024", -24)] * 4], result, *exceeds)


def _eight(*exceeds: int) -> Obligation:
    """Eight products lose almost a grid step each, and 1 + 7·2^-24 is cut to 1 + 3·2^-23."""
    terms = [product("2047/1024", -24)] * 7 + [product("2047/1024", -25)]
    return instance("f = 24: 1 + 7 products of almost 2^-23 + one", 24, [terms], "8388611/8388608", *exceeds)


def _two(final: str = "1/8388608") -> Obligation:
    """Two products lose almost a grid step each, and 1 + 3·2^-25 is cut to 1."""
    terms = [product("2047/1024", -25), product("1535/512", -25), *[ZERO] * 14]
    bound = ("1/33554432", final)
    return instance("f = 25: 1 + 2 products, 14 more that are 0", 25, [terms], "1", 2, bound=bound)


def _chained() -> Obligation:
    """Signs, an addend that is not the largest, sums that cancel; the second step starts from the first."""
    first = [
        product("1023/512", 3),
        product("-513/512", 4),
        product("1021/512", -9),
        product("-1025/1024", -20),
    ]
    second = [product("5/4", -3), product("-1023/1024", -22), product("7/4", 2), product("-3/2", 1)]
    label, third = "f = 24: two steps of 4 products", "11184811/33554432"
    return instance(label, 24, [first, second], "582825/131072", addend=third)


def _eight_bits() -> Obligation:
    """Factors of 4 bits, a result cut to 14: 2^-13 of a term and of the sum."""
    terms = [product("15/8", 0), product("-13/8", -5), product("9/8", -13), *[product("15/8", -14)] * 3]
    return instance("f = 13, p = 14: 6 products", 13, [terms], "14945/8192", addend="0", precision=14)


def parts() -> tuple[Part, ...]:
    """The bound of one step, of steps in a row, and exact instances."""
    return (
        Part(
            r"Let $g$ be the grid step and $c_i$ the terms $x_i$ cut to it, $|c_i-x_i|\le g$; $A=\sum c_i$"
            r" and $S=\sum x_i$. Then $|A|\le|S|+ng$, and with $|D-A|\le\rho|A|$ for the result $D$,"
            r" $|D-S|\le ng+\rho(|S|+ng)$.",
            (
                model.size_of_sum(1),
                model.size_of_sum(-1),
                model.error_of_step(1),
                model.error_of_step(-1),
            ),
        ),
        Part(
            r"$g=2^{-f}P$ with $P$ the largest power of two of a term, so at most $M=\max|x_i|$: the bound is"
            r" at most $n2^{-f}M+\rho(|S|+n2^{-f}M)$, where $\rho=2^{1-p}$.",
            (model.in_largest(),),
        ),
        Part(
            r"In steps in a row, each adding its products to the result before, the errors of the steps add:"
            r" $D_T-(D_0+\sum_tp_t)=\sum_td_t$.",
            (model.errors_add(),),
        ),
        Part(
            r"$\gamma_m=mu/(1-mu)$, $u=2^{-24}$, times the sum of absolute values bounds $m$ additions in any"
            r" order that round to nearest. Not these: with $f=23$ and 4 products the error exceeds"
            r" $\gamma_4$ (even $\gamma_7$), with $f=24$ and 8 products $\gamma_8$, with $f=25$ and 2"
            r" products (14 more are 0) $\gamma_2$ times it.",
            (_four("1", 4, 7), _eight(8), _two()),
        ),
        Part(
            r"The model on two steps in a row with signs and cancellation, and with factors of 8 bits.",
            (_chained(), _eight_bits()),
        ),
    )


CLAIM = Claim(
    id="kernel.tensor-core-sum",
    title="Tensor cores align, truncate and add: an error bound for their sums, and where γ_n fails for them",
    statement=(
        r"A step takes $n$ numbers $x_i$ (exact products and an addend), cuts each toward zero to a multiple"
        r" of $2^{E-f}$, $E$ the largest of their exponents, adds them exactly and cuts the sum toward zero"
        r" to $p$ bits. For its result $D$, $S=\sum x_i$ and $M=\max|x_i|$:"
        r" $|D-S|\le n2^{-f}M+2^{1-p}(|S|+n2^{-f}M)$. Errors of steps in a row add. With $p=24$ the bound"
        r" $\gamma_m\sum|x_i|$ of $m$ additions rounded to nearest can fail, at $f=23$, 24 and 25."
    ),
    source="kernels; model of MMA-Sim (arXiv 2511.10909) and of MATLAB-tensor-core (arXiv 2512.07004)",
    status=Status.NEW,
    scope=(
        "every n, f and p; the published parameters of binary32 results (p = 24) are f = 23 and 4 products a"
        " step (V100), f = 24 and 8 (T4, A100, Ada; 4 in tf32), f = 25 and 16 (H100, H200, B200; 8 in tf32)"
    ),
    variables=(
        Variable("x_i", r"the $n$ numbers of a step; numbers that are 0 need not be counted in $n$"),
        Variable("E", r"largest exponent: of a product the sum of those of its factors, so $2^E\le M$"),
        Variable("f", r"fraction bits kept in alignment, an integer"),
        Variable("p", r"precision of the result; $\rho=2^{1-p}$"),
        Variable("D_t, d_t, p_t", r"result of step $t$, its error, the exact sum of its products"),
    ),
    assumptions=(
        Assumption("the model is the published one; nothing is proved about hardware"),
        Assumption("factors are normal numbers: the exponent of a subnormal one is read too large"),
        Assumption(
            "the result does not overflow, and where it is subnormal the grid is no finer than the smallest"
            " number of its format, so that nothing is cut there"
        ),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant(
            "one term uncounted",
            "(n − 1)g for the cuts of n terms",
            lambda: (model.error_of_step(1, model.n - 1),),
        ),
        Mutant("exact result", "a result that is not cut", lambda: (model.error_of_step(1, final=0),)),
        Mutant("grid twice as coarse", "g = 2^(1 − f) P", lambda: (model.in_largest(2 * model.power),)),
        Mutant("errors double", "steps that add their error twice", lambda: (model.errors_add(2),)),
        Mutant(
            "rounded to nearest", "1 + 4(2^-23 − 2^-34) as 1 + 2^-21", lambda: (_four("2097153/2097152"),)
        ),
        Mutant("γ of nine", "the error of 8 products beyond γ_9", lambda: (_eight(9),)),
        Mutant("no final cut", "the bound without its share of the sum", lambda: (_two("0"),)),
    ),
    remark=(
        "Cutting errs toward zero in every term, so that the error of a long sum of one sign grows like the"
        " number of steps, not like its root. An instance of the model is not a measurement: no vectors of"
        " hardware are part of this claim."
    ),
)
