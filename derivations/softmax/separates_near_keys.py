"""A large enough query makes softmax tell near keys apart, however near.

Two unit keys with k₁·k₂ = ρ < 1 and the query λk₁: the logits are λ and λρ, and the weight of the first
token is the sigmoid of their difference λ(1 − ρ).
"""

from typing import Any

from sympy import Expr, Integer, Symbol, exp, log, symbols

from verify.derive import Chain, Definition, Setting
from verify.derive.contradiction import contradiction, term
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

lam, rho, eps, x = symbols(r"\lambda \rho \varepsilon x")
kept, apart = Symbol("c"), Symbol("d")


def _weight(after: Expr) -> Obligation:
    chain = Chain("weight of the first token", Setting(), exp(lam) / (exp(lam) + exp(lam * rho)))
    return chain.rearrange("divide by the first exponential", after).obligation()


def _threshold(numerator: Expr) -> Obligation:
    """At λ = ln((1 − ε)/ε)/(1 − ρ) the weight is exactly 1 − ε; c = 1 − ε, d = 1 − ρ."""
    names = (Definition("c", eps, 1 - kept),)
    setting = Setting(names, positive=(kept, eps, apart))
    needed = (log(numerator) - log(eps)) / apart
    chain = Chain("weight at the threshold", setting, 1 / (1 + exp(-needed * apart)))
    chain = chain.rearrange("the difference of the logits is a logarithm", 1 / (1 + eps / numerator))
    return chain.unfold("ε = 1 − c", kept, "c").obligation()


def _monotone(bound: str) -> Obligation:
    text = f"""(set-logic QF_NRA)
(declare-const y Real)(declare-const eps Real)
(assert (and (> eps 0.0) (< eps 1.0) (> y 0.0)))
(assert (not (= (>= 1.0 (* (- 1.0 eps) (+ 1.0 y))) (<= (* y {bound}) eps))))
(check-sat)
"""
    label = "1/(1 + y) ≥ 1 − ε exactly when y ≤ ε/(1 − ε)"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"})


def _needed(above: str, below: str) -> Obligation:
    """ln 99/(1 − 0.99): ε = 0.01 and ρ = 0.99; x is 1/(1 − ρ)."""
    data: dict[str, Any] = {
        "term": tree(log(Integer(99)) * x),
        "values": {"x": "100"},
        "above": above,
        "below": below,
    }
    return Obligation("inequality", "λ for weight 0.99 at ρ = 0.99", "B", data)


def _signs_monotone() -> Obligation:
    """Both sides of the equivalence are one polynomial."""
    case = (term(3), term(4))
    return contradiction(_monotone("(- 1.0 eps)"), case, case)


def parts() -> tuple[Part, ...]:
    """The weight, the threshold, the monotone dependence, a figure."""
    return (
        Part(
            r"At $q=\lambda k_1$ the weight of token 1 is $1/(1+e^{-\lambda(1-\rho)})$.",
            (_weight(1 / (1 + exp(-lam * (1 - rho)))),),
        ),
        Part(
            r"It is at least $1-\varepsilon$ iff $e^{-\lambda(1-\rho)}\le\varepsilon/(1-\varepsilon)$, that"
            r" is"
            r" $\lambda\ge\ln((1-\varepsilon)/\varepsilon)/(1-\rho)$; at equality it is $1-\varepsilon$. So"
            r" it tends to 1 as"
            r" $\lambda\to\infty$, for every $\rho<1$.",
            (_monotone("(- 1.0 eps)"), _signs_monotone(), _threshold(kept)),
        ),
        Part(
            r"At $\rho=0.99$ the weight $0.99$ takes $\lambda=100\ln99=459.5\dots$",
            (_needed("4595/10", "4596/10"),),
        ),
    )


CLAIM = Claim(
    id="softmax.separates-near-keys",
    title="A large enough query makes softmax tell near keys apart, however near",
    statement=(
        r"Two tokens with unit keys, $k_1\cdot k_2=\rho<1$, and $q=\lambda k_1$: the weight of token 1 is"
        r" $1/(1+e^{-\lambda(1-\rho)})$, which tends to 1, and is at least $1-\varepsilon$ iff"
        r" $\lambda\ge\ln((1-\varepsilon)/\varepsilon)/(1-\rho)$."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="every ρ < 1, every ε in (0, 1), every λ; the figure at ρ = 0.99 and ε = 0.01",
    variables=(
        Variable(r"\rho", r"$k_1\cdot k_2$, $[-1,1)$"),
        Variable(r"\lambda", "length of the query, real"),
        Variable(r"\varepsilon", r"$(0,1)$; $c=1-\varepsilon$"),
        Variable("d", r"$1-\rho$, > 0"),
    ),
    assumptions=(Assumption("two tokens, unit keys; the exponential is increasing"),),
    asked="CB",
    parts=parts,
    mutants=(
        Mutant("sum", "the weight with 1 + ρ", lambda: (_weight(1 / (1 + exp(-lam * (1 + rho)))),)),
        Mutant("threshold", "the threshold with ε² below", lambda: (_threshold(kept**2),)),
        Mutant("bound", "y ≤ ε without the 1 − ε", lambda: (_monotone("1.0"),)),
        Mutant("figure", "λ below 459", lambda: (_needed("458", "459"),)),
    ),
    remark="The price is the length of the query: it grows like 1/(1 − ρ), and logits with it.",
)
