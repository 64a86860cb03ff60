"""The definition of a mechanism as a few lines of torch, for a script that needs nothing else."""

from verify.audit.case import Case
from verify.audit.convention.convention import Convention

_SPREAD = """\
{inputs} = (x[n].double(){tokens} for n in ({names}))
{lent} = (y.repeat_interleave({whole}.shape[2] // y.shape[2], 2) for y in ({lent}))
"""
_RECURRENCE = """\
S, o = {state}, []
for t in range(v.shape[1]):
    u = v[:, t]
"""
_HELD = '    h = torch.einsum("bhkv,bhk->bhv", S, a[:, t])\n'
_DECAYED = "    S = {decay} * S\n"
_ERASED = """\
    u = beta[:, t, :, None] * (u - torch.einsum("bhkv,bhk->bhv", S, k[:, t]))
"""
_ADDED = '    S = S + torch.einsum("bhk,bhv->bhkv", b[:, t], h)\n'
_GATED = '    u = w[:, t] * u - torch.einsum("bhkv,bhk->bhv", S, b[:, t] * k[:, t])\n'
_WRITTEN = """\
    S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], u)
    o.append(torch.einsum("bhkv,bhk->bhv", S, {scale!r} * q[:, t]))
o = torch.stack(o, 1)
"""
_ATTENTION = """\
s = torch.einsum("bthk,bjhk->bhtj", {scale!r} * q, k)
m = torch.ones(s.shape[-2:], dtype=torch.bool).tril(){window}
{weights}
o = torch.einsum("bhtj,bjhv->bthv", p, v)
"""
_WEIGHTS = {
    "softmax": "p = s.masked_fill(~m, -torch.inf).softmax(-1)",
    "sink": "s = s.masked_fill(~m, -torch.inf)\n"
    "p = (s - torch.logaddexp(s.logsumexp(-1, True), torch.full((), {sink}, dtype=s.dtype))).exp()",
    "linear": "p = s * m / (s * m).sum(-1, keepdim=True)",
}
_DECAY = {"ln": "g{}.exp()", "log2": "g{}.exp2()", "linear": "g{}"}


def definition(case: Case, c: Convention) -> str:
    """Source text that computes o, and the state S where there is one, in float64."""
    kind, s, names = c.kind, case.shape, c.arguments
    swapped = ".transpose(1, 2)" if c.token_layout == "BHTD" else ""
    keys = ", ".join(repr(names[f]) for f in kind.tokens)
    whole = "q" if "v" in kind.shared else "v"
    inputs, lent = ", ".join(kind.tokens), ", ".join(kind.shared)
    text = _SPREAD.format(inputs=inputs, tokens=swapped, names=keys, lent=lent, whole=whole)
    if not kind.stateful:
        window = "" if kind.window is None else f".triu({1 - kind.window})"
        weights = _WEIGHTS[kind.weights if kind.sink is None else "sink"].format(sink=kind.sink)
        return text + _ATTENTION.format(scale=case.scale, window=window, weights=weights)
    state = f"torch.zeros({s.B}, {s.HV}, {s.K}, {s.V}, dtype=torch.float64)"
    if case.initial_state is not None:
        state = f"x[{names['initial_state']!r}].double()" + (".mT" if c.state_layout == "VK" else "")
    channels = "[:, t, :, :, None]" if kind.gate == "channel" else "[:, t, :, None, None]"
    own = ("a" in kind.tokens, "w" in kind.tokens)
    text += _RECURRENCE.format(state=state) + _HELD * own[0]
    text += _DECAYED.format(decay=_DECAY[c.gate_space].format(channels)) if kind.gate else ""
    text += _ERASED * kind.erases + _ADDED * own[0] + _GATED * own[1]
    return text + _WRITTEN.format(scale=case.scale)
