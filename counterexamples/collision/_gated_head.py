"""What a head computes, over any number system: its token map, its state and its softmax attention."""

from collections.abc import Sequence
from typing import Generic

from counterexamples.collision._gated_layer import NEEDED, NORM_EPS, Layer
from derivations.gdn import definition as gdn
from derivations.kda import definition as kda
from derivations.softmax.definition import attend
from derivations.softmax.definition import weights as softmax
from verify.numbers.protocol import M, NumberSystem, S


class Head(Generic[S, M]):
    """A layer over one number system."""

    def __init__(self, numbers: NumberSystem[S, M], layer: Layer) -> None:
        self.numbers = numbers
        self.layer = layer
        self._w = {name: numbers.matrix(getattr(layer, name)) for name in NEEDED}
        self._bias = numbers.matrix([[x] for x in layer.dt_bias])
        self._rate = numbers.exp(numbers.number(layer.a_log))
        keys, _, _ = layer.sizes
        self._scale = numbers.reciprocal(numbers.sqrt(numbers.number(keys)))

    def normed(self, name: str, x: M) -> M:
        """n(w x), K×1, for ``w_q`` or ``w_k`` and a token D×1."""
        numbers = self.numbers
        y = numbers.matmul(self._w[name], x)
        square = numbers.add(numbers.matmul(numbers.transpose(y), y), numbers.matrix([[NORM_EPS]]))
        return numbers.scale(numbers.reciprocal(numbers.sqrt(numbers.entry(square, 0, 0))), y)

    def value(self, x: M) -> M:
        """w_v x, V×1."""
        return self.numbers.matmul(self._w["w_v"], x)

    def strength(self, x: M) -> S:
        """β = σ(w_beta·x): the first of the softmax weights of that number and 0."""
        numbers = self.numbers
        y = numbers.entry(numbers.matmul(self._w["w_beta"], x), 0, 0)
        return numbers.entry(softmax(numbers, numbers.matrix([[y], [0]])), 0, 0)

    def gates(self, x: M) -> M:
        """The natural logarithms of the decays, 1×1 for GDN and K×1 for KDA."""
        numbers = self.numbers
        y = numbers.add(numbers.matmul(self._w["w_gate"], x), self._bias)
        soft = numbers.matrix([[self._softplus(item)] for (item,) in numbers.to_lists(y)])
        return numbers.sub(numbers.zeros(*numbers.shape(y)), numbers.scale(self._rate, soft))

    def _softplus(self, y: S) -> S:
        """ln(e^y + 1), the larger exponent taken out."""
        numbers = self.numbers
        pair = numbers.matrix([[y], [0]])
        top = numbers.shift(pair)
        lowered = numbers.exp_entries(numbers.sub(pair, numbers.scale(top, numbers.matrix([[1], [1]]))))
        total = numbers.matmul(numbers.matrix([[1, 1]]), lowered)
        rest = numbers.log(numbers.entry(total, 0, 0))
        return numbers.entry(numbers.matmul(numbers.matrix([[1, 1]]), numbers.matrix([[top], [rest]])), 0, 0)

    def state(self, tokens: Sequence[M]) -> M:
        """The state K×V after the tokens, from zero."""
        numbers = self.numbers
        k = [self.normed("w_k", x) for x in tokens]
        v = [self.value(x) for x in tokens]
        beta = [self.strength(x) for x in tokens]
        g = [self.gates(x) for x in tokens]
        start = numbers.zeros(numbers.shape(k[0])[0], numbers.shape(v[0])[0])
        if self.layer.mechanism == "gdn":
            alpha = gdn.decay(numbers, [numbers.entry(item, 0, 0) for item in g])
            return gdn.recurrence(numbers, k, k, v, alpha, beta, scale=self._scale, state=start)[1]
        alphas = kda.decay(numbers, g)
        return kda.recurrence(numbers, k, k, v, alphas, beta, scale=self._scale, state=start)[1]

    def softmax(self, tokens: Sequence[M]) -> M:
        """Softmax attention of the last token over all of them, V×1."""
        k = [self.normed("w_k", x) for x in tokens]
        v = [self.value(x) for x in tokens]
        return attend(self.numbers, self.normed("w_q", tokens[-1]), k, v, scale=self._scale)
