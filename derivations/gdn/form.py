"""The expansion with a substituted query is decay, directed erase and residual write: GDN's form, not GDN.

From gdn.affine-obstruction with the query that reads the old state replaced by κ_t. Compared with
S_t = α(I − βkkᵀ)S_{t−1} + βkvᵀ with v_t ≠ v̄_{t−1}: for the key κ_t, with two nonzero channels, and the value
v_t − v̄_{t−1} no α, β fit; for a raw key not parallel to κ_t no scaling of key and value fits either; for the
centred key lengthened to κ_t·t/(t − 1) the two are equal.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.gdn._symbols import SIZES, K, S, b, c, dot, e, kappa, q, t, v
from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

alpha, beta, tau, u, mu = symbols(r"alpha beta tau u mu")
one, two, raw_one, raw_two = symbols("kappa_1 kappa_2 k_1 k_2")
key = IndexedBase("k'")
residual = v[t] - b[t - 1]
held = Sum(kappa[t, e] * S[t - 1, e], (e, 1, K))
form = (1 - 1 / t) * S[t - 1, c] - kappa[t, c] * held / t + kappa[t, c] * residual / t
"""Channel c of the new state, one column."""


def _derived(new: Expr) -> Obligation:
    setting = Setting(nonempty=(t, K), instances=SIZES)
    along = dot(kappa[t, c], q[c])
    start = (1 - 1 / t) * dot(S[t - 1, c], q[c]) + along * residual / t - along * held / t
    chain = Chain("what the query reads after one step with the substitute κ_t", setting, start)
    return chain.rearrange("linear in q", dot(new, q[c])).obligation()


def _residual_write() -> Obligation:
    setting = Setting(nonempty=(t, K), instances=SIZES)
    chain = Chain("erase and write together", setting, form)
    after = (1 - 1 / t) * S[t - 1, c] + kappa[t, c] * (residual - held) / t
    return chain.rearrange("one rank-one change", after).obligation()


def _equal(decay: Expr, write: Expr, length: Expr) -> Obligation:
    """α(I − βk'k'ᵀ)S + βk'uᵀ with the given α, β and k' = length·κ."""
    lengthened = Definition("lengthened key", key[c], length * kappa[t, c], free=(c,))
    setting = Setting((lengthened,), nonzero=(t - 1,), nonempty=(t, K), instances=SIZES)
    read = Sum(key[e] * S[t - 1, e], (e, 1, K))
    start = decay * (S[t - 1, c] - write * key[c] * read) + write * key[c] * residual
    chain = Chain("GDN with a lengthened key", setting, start)
    return chain.unfold("insert the key", form, "lengthened key").obligation()


def _single_channel() -> Obligation:
    """One channel: β = 1/t and a suitable α."""
    setting = Setting(nonzero=(t - one**2,), nonempty=(t,), instances=({t: 2}, {t: 5}))
    decay = (t - 1 - one**2) / (t - one**2)
    chain = Chain("GDN's decay in one channel with β = 1/t", setting, decay * (1 - one**2 / t))
    return chain.rearrange("the fraction cancels", 1 - 1 / t - one**2 / t).obligation()


def _combination(label: str, target: Expr, terms: tuple[tuple[Expr, Expr], ...]) -> Obligation:
    data = {
        "equations": [tree(equation) for _, equation in terms],
        "multipliers": [tree(multiplier) for multiplier, _ in terms],
        "target": tree(target),
    }
    return Obligation("polynomial-certificate", label, "E", data)


def _no_scalars(target: Expr) -> Obligation:
    """τ = 1/t; entries (1, 2) and (1, 1) of the transition and row 1 of the write must agree."""
    mixed = one * two * (alpha * beta - tau)
    diagonal = alpha * (1 - beta * one**2) - (1 - tau - tau * one**2)
    written = one * u * (beta - tau)
    return _combination(
        "κ₁κ₂u/t² is a combination of three differences that must vanish",
        target,
        ((tau * u * one**2 - u, mixed), (one * two * tau * u, diagonal), (alpha * two, written)),
    )


def _no_scaling(target: Expr) -> Obligation:
    """Rows 1 and 2 of the write: μ collects β and any scaling of key and value."""
    rows = (mu * raw_one - tau * one * u, mu * raw_two - tau * two * u)
    return _combination(
        "(u/t)(k₁κ₂ − k₂κ₁) is a combination of two rows of the write that must agree",
        target,
        ((raw_two, rows[0]), (-raw_one, rows[1])),
    )


def _not_parallel(determinant: str) -> Obligation:
    data = {"matrix": [["0", "1"], ["-1/2", "1/2"]], "determinant": determinant, "nonzero": True}
    return Obligation("determinant", "t = 2, keys (1, 0), (0, 1): k₂ and κ₂ are not parallel", "E", data)


def parts() -> tuple[Part, ...]:
    """The form, and three ways to match it with GDN."""
    return (
        Part(
            r"With $\hat q=\kappa_t$ in the quadratic term the state becomes"
            r" $S_t=[(1-\tfrac1t)I-\tfrac1t\kappa_t\kappa_t^\top]S_{t-1}+\tfrac1t\kappa_t(v_t-\bar"
            r" v_{t-1})^\top$, or $(1-\tfrac1t)S_{t-1}+\tfrac1t\kappa_t(v_t-\bar v_{t-1}-S_{t-1}^\top"
            r"\kappa_t)^\top$: decay, erase along $\kappa_t$, write of the residual.",
            (_derived(form), _residual_write()),
        ),
        Part(
            r"Read as GDN with key $\kappa_t$ and value $u=v_t-\bar v_{t-1}$, no $\alpha,\beta$ match it when"
            r" $\kappa_t$ has two nonzero channels and $u\ne0$: the off-diagonal entry wants"
            r" $\alpha\beta=\tfrac1t$, the write $\beta=\tfrac1t$, the diagonal $\alpha=1-\tfrac1t$. For"
            r" $K\ge2$ a rotation, which commutes with both, brings any $\kappa_t\ne0$ there. (In one"
            r" channel they exist, for $\kappa_t^2\ne t$.)",
            (_no_scalars(one * two * tau**2 * u), _single_channel()),
        ),
        Part(
            r"With the raw key $k_t$, not parallel to $\kappa_t$, and $u\ne0$ not even scaling key and value"
            r" helps: the two writes are not parallel. Witness: $t=2$, keys $(1,0),(0,1)$, so"
            r" $\kappa_2=(-\tfrac12,\tfrac12)$, any values $v_2\ne v_1$.",
            (_no_scaling(tau * u * (raw_one * two - raw_two * one)), _not_parallel("1/2")),
        ),
        Part(
            r"With the centred key lengthened to $\kappa_t\tfrac t{t-1}$ and the value $v_t-\bar v_{t-1}$ it"
            r" is exactly GDN, with $\alpha=1-\tfrac1t$ and $\beta=\tfrac{t-1}{t^2}$, for every $t\ge2$.",
            (_equal(1 - 1 / t, (t - 1) / t**2, t / (t - 1)),),
        ),
    )


CLAIM = Claim(
    id="gdn.form",
    title="The expansion with a substituted query is decay, directed erase and residual write",
    statement=(
        r"Substituting $\hat q=\kappa_t$ gives $S_t=[(1-\tfrac1t)I-\tfrac1t\kappa_t\kappa_t^\top]S_{t-1}"
        r"+\tfrac1t\kappa_t(v_t-\bar v_{t-1})^\top$: decay, directed erase, residual write. Against GDN,"
        r" $S_t=\alpha(I-\beta kk^\top)S_{t-1}+\beta kv^\top$: the gate $\alpha$ scales the erase as well"
        r" (here it does not), key and value are centred, and $\tfrac1t$ stands where GDN learns. For"
        r" $v_t\ne\bar v_{t-1}$ and either the raw key, not parallel to $\kappa_t$, or the key $\kappa_t$"
        r" with two nonzero channels, no $\alpha,\beta$ make them equal; for the key"
        r" $\kappa_t\tfrac t{t-1}$ and the value $v_t-\bar v_{t-1}$ they are, with"
        r" $\alpha=1-\tfrac1t,\ \beta=\tfrac{t-1}{t^2}$."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 2, every key width K (K ≥ 2 for the impossibility), values coordinate by coordinate",
    variables=(
        Variable(r"\kappa_t", r"centred key, $\mathbb{R}^K$"),
        Variable("u", r"one coordinate of $v_t-\bar v_{t-1}$, $\mathbb{R}$"),
        Variable(r"\alpha,\beta", r"any real decay and write strength"),
        Variable(r"\tau", r"$\tfrac1t$"),
        Variable(r"\mu", r"$\beta$ times any scaling of key and value"),
    ),
    assumptions=(
        Assumption("GDN as in derivations.gdn.definition: decay, erase, write, with one α and β per token"),
        Assumption("the two must agree as maps of every old state, so entry by entry"),
        Assumption("the running mean of the values is carried beside the state and added to the output"),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant(
            "erase forgotten",
            "the form without its erase term",
            lambda: (_derived(form + kappa[t, c] * held / t),),
        ),
        Mutant(
            "key not lengthened",
            "equality claimed for the centred key itself",
            lambda: (_equal(1 - 1 / t, 1 / t, Integer(1)),),
        ),
        Mutant(
            "one channel",
            "the impossibility claimed for one nonzero channel, where α and β exist",
            lambda: (_no_scalars(one * tau**2 * u),),
        ),
        Mutant(
            "raw residual",
            "the value written without subtracting the mean",
            lambda: (_derived(form + kappa[t, c] * b[t - 1] / t),),
        ),
        Mutant(
            "strength of the short key",
            "the lengthened key with β = 1/t",
            lambda: (_equal(1 - 1 / t, 1 / t, t / (t - 1)),),
        ),
        Mutant("parallel keys", "a determinant of 0", lambda: (_not_parallel("0"),)),
    ),
    remark=(
        "«Same family» is more than a likeness: only centring and the length of the key separate the two."
        " What GDN adds is that α and β are learned and that nothing needs to know t."
    ),
)
