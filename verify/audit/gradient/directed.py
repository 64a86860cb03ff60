"""Reference gradients of DPLR and GDN-2 in float64, with rigorous bounds; formulas in `adjoint.directed`."""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.reference.recurrence import U, frobenius, row_norm
from verify.audit.reference.transition import Setting, Step, down, steps

Part = tuple[Array, Array]
"""A value and a bound of the 2-norm of its error."""


def gradients(case: Case, functional: Cotangent) -> dict[str, Part]:
    """Per output head, backward through the tokens, by field; and the terms that `running` needs.

    A product of x and y with errors dx and dy is off by at most |x|dy + |y|dx + dx dy, plus its roundings.
    The gradient X of the state is carried by the transposes of the transitions, whose norms they have.
    """
    c, s = Setting.of(case), case.shape
    tokens = list(steps(case, c))
    after, error = functional.state, np.zeros((s.B, s.HV))
    rows: list[dict[str, Part]] = []
    for t in reversed(range(s.T)):
        d_output = functional.output[:, t]
        added = c.q[:, t, :, :, None] * d_output[..., None, :]
        after = after + added
        error = (error + 4 * U * frobenius(added) + U * frobenius(after)) * c.up
        row = _Row(c, tokens[t], t, after, error)
        rows.append({"q": row.query(d_output, case.scale), **row.fields(case)})
        after, error = row.before()
    parts = {
        name: (np.stack([r[name][0] for r in rows[::-1]], 1), np.stack([r[name][1] for r in rows[::-1]], 1))
        for name in (rows[0] if rows else {})
    }
    if case.initial_state is not None:
        parts["initial_state"] = after, error
    return parts


class _Row:
    """The gradients of what one token reads, removes and writes, from the gradient of the state after it."""

    def __init__(self, c: Setting, step: Step, t: int, after: Array, error: Array) -> None:
        self.c, self.step, self.t = c, step, t
        self.after, self.error = after, error
        k, v = after.shape[-2:]
        self.inner = 2 * (k * v + 4) * U
        self.read, self.out, self.key, self.value = (
            x[:, t] for x in (c.way.read, c.way.out, c.way.key, c.way.value)
        )
        self.d_value = self._exact(down(after, self.key), c.lengths["key"][:, t])
        self.d_held = self._exact(down(after, self.out), c.lengths["out"][:, t])
        self.d_key = self._exact(_across(after, self.value), c.lengths["value"][:, t])
        self.d_out = self._product(_across(after, step.held), after, error, step.held, step.held_error)
        early = c.way.before_decay
        source = (step.before, step.before_error) if early else (step.decayed, step.decayed_error)
        self.d_read = self._product(_across(source[0], self.d_held[0]), *source, *self.d_held)
        self.d_decayed = (after, error) if early else self._with_read(after, error, c.stretch[:, t])

    def _exact(self, value: Array, length: Array) -> Part:
        """X times a vector of this length that has a relative error of at most 2u."""
        own = (self.inner + 2 * U) * length * frobenius(self.after)
        return value, (length * self.error + own) * self.c.up

    def _product(self, value: Array, x: Array, dx: Array, y: Array, dy: Array) -> Part:
        size, length = frobenius(x), row_norm(y)
        error = size * dy + length * dx + dx * dy + self.inner * size * length
        return value, error * self.c.up

    def _with_read(self, state: Array, error: Array, norm: Array) -> Part:
        """state + read d_held^T, where ``norm`` is that of the exact map of X to it."""
        length, (d_held, _) = self.c.lengths["read"][:, self.t], self.d_held
        value = state + self.read[..., None] * d_held[..., None, :]
        own = (self.inner + 2 * U) * self.c.lengths["out"][:, self.t] * frobenius(self.after)
        local = length * (own + 3 * U * row_norm(d_held)) + U * frobenius(value)
        return value, (norm * error + local) * self.c.up

    def before(self) -> Part:
        """The gradient of the state before the token."""
        c, t, (decayed, error) = self.c, self.t, self.d_decayed
        alpha, alpha_error = c.alpha[:, t, ..., None], c.alpha_error[:, t, ..., None]
        state = alpha * decayed
        own = frobenius(alpha_error * np.abs(decayed)) + U * frobenius(state)
        if not c.way.before_decay:
            return state, (c.widest[:, t] * error + own) * c.up
        value, error = self._with_read(state, self.error, c.norm[:, t])
        return value, (error + own) * c.up

    def query(self, d_output: Array, scale: float) -> Part:
        after, own = self.step.after, row_norm(d_output)
        read = _across(after, d_output)
        error = own * (self.step.after_error + self.inner * self.step.size)
        return scale * read, (abs(scale) * (error + U * row_norm(read))) * self.c.up

    def gate(self) -> Part:
        """By sum_c (|D_c| dX)^2 <= max |D_c|^2 dX^2."""
        s, (decayed, error) = self.step, self.d_decayed
        sizes = [np.sqrt(np.square(x).sum(-1).max(-1)) for x in (s.decayed, decayed)]
        own = row_norm(np.abs(s.decayed * decayed).sum(-1))
        bound = sizes[0] * error + sizes[1] * s.decayed_error + s.decayed_error * error + self.inner * own
        return (s.decayed * decayed).sum(-1), bound * self.c.up

    def fields(self, case: Case) -> dict[str, Part]:
        """Of the inputs that the directions are made of, and ``subtracted``, `Gradients.terms`."""
        pairs = [(self.read, self.d_read), (self.out, self.d_out), (self.key, self.d_key)]
        sizes = np.sum([np.abs(x * d) for x, (d, _) in pairs], axis=0)
        found = {"g": self.gate(), "subtracted": (sizes, np.full(self.error.shape, np.inf))}
        if case.a is not None:
            return found | {"a": self.d_read, "b": self.d_out, "k": self.d_key, "v": self.d_value}
        assert case.b is not None
        assert case.w is not None
        b, w, v = case.b[:, self.t], case.w[:, self.t], case.v[:, self.t]
        through = self._entrywise(b, self.d_read)
        d_key = self.d_key[0] - self.d_out[0] + through[0]
        error = self.d_key[1] + self.d_out[1] + through[1]
        error = error + 2 * U * (row_norm(self.d_key[0]) + row_norm(self.d_out[0]) + row_norm(through[0]))
        return found | {
            "k": (d_key, error * self.c.up),
            "v": self._entrywise(w, self.d_value),
            "b": self._entrywise(self.key, self.d_read),
            "w": self._entrywise(v, self.d_value),
        }

    def _entrywise(self, x: Array, part: Part) -> Part:
        value = x * part[0]
        return value, (np.abs(x).max(-1) * part[1] + U * row_norm(value)) * self.c.up


def _across(matrix: Array, row: Array) -> Array:
    """[..., K, V] times [..., V]."""
    return np.asarray((matrix @ row[..., None])[..., 0])
