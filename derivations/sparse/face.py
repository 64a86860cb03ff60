"""Attention restricted to a set of tokens solves the same entropic problem on a face of the simplex.

On the face the dropped weights and their entropy terms are zero, so the objective is that of the kept
tokens alone, and its excess over the renormalised softmax is τ·KL, as for all tokens. The renormalised
softmax is also the point of the face that is nearest to the full softmax in KL(·‖p): the divergence from p
is the divergence from the renormalised weights plus a constant.
"""

from sympy import Expr, IndexedBase, Integer, Symbol, exp, log

from derivations.sparse._divergence import a, divergence, eta, nonnegative, on_simplex, q
from derivations.sparse._symbols import CUT, SIZES, dropped, everything, j, k, kept, m, n, p
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

tau = Symbol("tau")
s = IndexedBase("s")
full = everything(exp(s[j] / tau))
partial = kept(exp(s[j] / tau))
softmax = Definition("softmax", p[k], exp(s[k] / tau) / full, free=(k,))
renormalised = Definition("renormalised", q[k], exp(s[k] / tau) / partial, free=(k,))


def _objective_on_face(after: Expr) -> Obligation:
    zero = (
        Definition("dropped weight", a[k], Integer(0), free=(k,), guards=((k, m),)),
        Definition("0 ln 0", eta[k], Integer(0), free=(k,), guards=((k, m),)),
    )
    setting = Setting(zero, positive=(tau,), order=CUT, instances=SIZES)
    chain = Chain("the objective on the face", setting, everything(tau * eta[j] - a[j] * s[j]))
    halves = dropped(tau * eta[j] - a[j] * s[j]) + kept(tau * eta[j] - a[j] * s[j])
    chain = chain.split("dropped tokens, kept tokens", halves, n, m)
    return chain.unfold("dropped tokens have no weight", after, "dropped weight", "0 ln 0").obligation()


def _excess(temperature: Expr) -> Obligation:
    setting = Setting((renormalised,), (on_simplex,), positive=(tau,), order=CUT, instances=SIZES)
    start = kept(tau * eta[j] - a[j] * s[j]) + tau * log(partial)
    chain = Chain("what any other point of the face costs more", setting, start)
    weighted = kept(tau * eta[j] - a[j] * s[j]) + tau * log(partial) * kept(a[j])
    chain = chain.use("the weights sum to 1", weighted, simplex=-tau * log(partial))
    return chain.unfold("read off ln q_j", temperature * divergence, "renormalised").obligation()


def _value() -> Obligation:
    setting = Setting((renormalised,), positive=(tau,), order=CUT, instances=SIZES)
    chain = Chain("the value there", setting, kept(tau * q[j] * log(q[j]) - q[j] * s[j]))
    return chain.unfold("insert the weights", -tau * log(partial), "renormalised").obligation()


def _unit() -> Obligation:
    setting = Setting((renormalised,), positive=(tau,), order=CUT, instances=SIZES)
    chain = Chain("the renormalised weights sum to 1", setting, kept(q[j]))
    return chain.unfold("the same sum above and below", Integer(1), "renormalised").obligation()


def _rescaled(mass: Expr) -> Obligation:
    setting = Setting((softmax, renormalised), positive=(tau,), order=CUT, instances=SIZES)
    chain = Chain("softmax divided by the kept mass", setting, p[k] / mass)
    return chain.unfold("the full sum cancels", q[k], "softmax", "renormalised").obligation()


def _projection(constant: Expr) -> Obligation:
    setting = Setting((softmax, renormalised), (on_simplex,), (tau, p, q), order=CUT, instances=SIZES)
    start = kept(eta[j] - a[j] * log(p[j]))
    chain = Chain("the divergence of a point of the face from the full softmax", setting, start)
    logs = divergence + (log(full) - log(partial)) * kept(a[j])
    chain = chain.unfold("read off both logarithms", logs, "softmax", "renormalised")
    return chain.use("the weights sum to 1", divergence + constant, simplex=_constant()).obligation()


def _constant() -> Expr:
    return log(full) - log(partial)


def _kept_mass() -> Obligation:
    setting = Setting((softmax,), positive=(tau,), order=CUT, instances=SIZES)
    chain = Chain("the constant is −ln of the kept mass", setting, -log(kept(p[j])))
    return chain.unfold("insert the weights", _constant(), "softmax").obligation()


def parts() -> tuple[Part, ...]:
    """The objective, its minimiser, and the projection."""
    return (
        Part(
            r"On the face $\{a_j=0\text{ for dropped }j\}$ the objective $F(a)=\sum_j(\tau a_j\ln"
            r" a_j-a_js_j)$ is that of the kept tokens alone.",
            (_objective_on_face(kept(tau * eta[j] - a[j] * s[j])),),
        ),
        Part(
            r"$q_j=e^{s_j/\tau}/\sum_{\text{kept}}e^{s/\tau}$ lies on the face,"
            r" $F(q)=-\tau\ln\sum_{\text{kept}}e^{s/\tau}$, and $F(a)-F(q)=\tau\,\mathrm{KL}(a\|q)$ for"
            r" every $a$ on the face.",
            (_unit(), _value(), _excess(tau)),
        ),
        Part(
            r"$\mathrm{KL}(a\|q)$ is a sum of terms that are at least 0 and 0 only where $a_j=q_j$: so $q$ is"
            r" the unique minimiser.",
            nonnegative(),
        ),
        Part(
            r"$q$ is the full softmax restricted to the kept tokens and divided by their mass.",
            (_rescaled(kept(p[j])),),
        ),
        Part(
            r"$\mathrm{KL}(a\|p)=\mathrm{KL}(a\|q)-\ln\sum_{\text{kept}}p_j$ for every $a$ on the face: $q$"
            r" is the projection of $p$ onto it.",
            (_projection(_constant()), _kept_mass()),
        ),
    )


CLAIM = Claim(
    id="sparse.face",
    title="Attention restricted to a set of tokens solves the same entropic problem on a face of the simplex",
    statement=(
        r"For a kept set, the minimiser of $F(a)=-\sum_ja_js_j+\tau\sum_ja_j\ln a_j$ over the face"
        r" $\{a\text{ on the simplex}: a_j=0\text{ for dropped }j\}$ is unique and is the renormalised"
        r" softmax $q_j=p_j/\sum_{\text{kept}}p$; it also minimises $\mathrm{KL}(\cdot\|p)$ over the face,"
        r" with minimum $-\ln\sum_{\text{kept}}p$."
    ),
    source="article A, section 5",
    status=Status.AS_PRINTED,
    scope="every number of tokens, every kept set (not empty), every τ > 0, boundary of the face included",
    variables=(
        Variable("n, m", r"tokens and dropped tokens, integers with $1\le m<n$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable("a", "the face"),
    ),
    assumptions=(
        Assumption("tokens are numbered so that the dropped ones come first (a relabelling)"),
        Assumption(r"$0\ln0=0$: $\eta_j$ stands for $a_j\ln a_j$, or 0 where $a_j=0$"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "dropped tokens counted",
            "an objective on the face with the dropped scores",
            lambda: (_objective_on_face(kept(tau * eta[j] - a[j] * s[j]) - dropped(s[j])),),
        ),
        Mutant("no temperature", "the excess without its factor τ", lambda: (_excess(Integer(1)),)),
        Mutant("dropped mass", "division by the dropped mass", lambda: (_rescaled(dropped(p[j])),)),
        Mutant("no constant", "a projection without its constant", lambda: (_projection(Integer(0)),)),
    ),
    remark="What sparse attention changes is the feasible set, not the objective.",
)
