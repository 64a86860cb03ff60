"""Certified top-k: the bound holds for the exact softmax, checked in exact and ball arithmetic."""

import pytest
import torch
from agreement import assert_agrees, gradients
from flint import arb, ctx, fmpq

from kernels.softmax.reference import reference_softmax
from kernels.topk.certified import certified_topk
from kernels.topk.reference import reference_topk
from kernels.topk.score_bounds import dropped_mass_bounds, score_errors, weight_bounds


def exact_dropped_mass(query, keys, scale, kept):
    """A ball around the softmax mass of the keys that are not kept, scores in exact rationals."""

    def rational(x):
        return fmpq(*x.as_integer_ratio())

    old, ctx.prec = ctx.prec, 300
    try:
        dropped, total = arb(0), arb(0)
        for j, key in enumerate(keys):
            score = sum((rational(a) * rational(b) for a, b in zip(query, key, strict=True)), fmpq(0))
            weight = arb(score * rational(scale)).exp()
            total += weight
            if j not in kept:
                dropped += weight
        return dropped / total
    finally:
        ctx.prec = old


def worst_violation(q, k, scale, kept, bound):
    """The first query whose bound is not certainly above the exact mass, or None; one head, causal."""
    for t in range(q.shape[1]):
        own = {j for j in kept[0, t, 0].tolist() if j >= 0}
        offset = k.shape[1] - q.shape[1]
        keys = k[0, : t + offset + 1, 0].double().tolist()
        mass = exact_dropped_mass(q[0, t, 0].double().tolist(), keys, scale, own)
        if not mass <= arb(bound[0, t, 0].item()):
            return t
    return None


def random_inputs(dtype, *, spread=3.0, tokens=9, keys=15, width=5, seed=0):
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    q, k, v = normal(1, tokens, 1, width) * spread, normal(1, keys, 1, width), normal(1, keys, 1, 3)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def cancelling_inputs(seed):
    """Scores a b - a (b + d) near 1 from products near 2^53: each is computed with an error of about 1."""
    rng = torch.Generator().manual_seed(seed)
    a, b = (2.0**26 * (1 + torch.rand(n, generator=rng, dtype=torch.float64)) for n in (1, 12))
    d = 2.0**-26 * torch.randint(0, 3, (12,), generator=rng)
    q = torch.stack([a, -a], dim=-1).view(1, 1, 1, 2)
    k = torch.stack([b, b + d], dim=-1).view(1, 12, 1, 2)
    return q, k, torch.ones(1, 12, 1, 1, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 1e-2, 1e-9])
def test_bound_holds_for_the_exact_softmax(dtype, epsilon):
    for seed in range(3):
        q, k, v = random_inputs(dtype, seed=seed)
        result = certified_topk(q, k, v, epsilon=epsilon, scale=0.3)
        assert (result.dropped_mass <= epsilon).all()
        assert worst_violation(q, k, 0.3, result.kept, result.dropped_mass) is None


def test_no_fewer_of_the_best_keys_would_do():
    """With one key less, the exact mass exceeds epsilon: the rounding slack costs no key here."""
    q, k, v = random_inputs(torch.float32)
    result = certified_topk(q, k, v, epsilon=0.05, scale=0.3)
    sizes = (result.kept >= 0).sum(-1)
    assert (sizes < torch.arange(7, 16)[:, None]).any()
    for t in range(q.shape[1]):
        fewer = set(result.kept[0, t, 0, : sizes[0, t, 0] - 1].tolist())
        keys = k[0, : t + 7, 0].double().tolist()
        assert exact_dropped_mass(q[0, t, 0].double().tolist(), keys, 0.3, fewer) > arb(0.05)


def test_rounding_errors_of_scores_are_in_the_bound():
    violations = 0
    for seed in range(5):
        q, k, v = cancelling_inputs(seed)
        scores = q[:, :, 0] @ k[:, :, 0].mT
        result = certified_topk(q, k, v, epsilon=0.9, scale=1.0)
        assert worst_violation(q, k, 1.0, result.kept, result.dropped_mass) is None
        # The same without the errors of the scores is no bound: whatever is kept, it may fail.
        order = scores.argsort(dim=-1, descending=True)
        visible, no_errors = torch.ones_like(scores, dtype=torch.bool), torch.zeros_like(scores)
        naive = dropped_mass_bounds(*(x.gather(-1, order) for x in weight_bounds(scores, no_errors, visible)))
        for count in range(1, 12):
            kept = order[..., None, :count]
            violations += worst_violation(q, k, 1.0, kept, naive[..., [count]]) is not None
            enclosed = weight_bounds(scores, score_errors(q[:, :, 0], k[:, :, 0]), visible)
            bounds = dropped_mass_bounds(*(x.gather(-1, order) for x in enclosed))
            assert worst_violation(q, k, 1.0, kept, bounds[..., [count]]) is None
    assert violations > 0


def test_score_errors_enclose_the_exact_scores():
    for seed in range(20):
        q, k, _ = random_inputs(torch.float64, spread=1e3, tokens=3, keys=4, width=17, seed=seed)
        scaled = q[0, :, 0] * 0.1
        computed, errors = scaled @ k[0, :, 0].mT, score_errors(scaled, k[0, :, 0])
        for i in range(3):
            for j in range(4):
                pairs = zip(q[0, i, 0].tolist(), k[0, j, 0].tolist(), strict=True)
                exact = sum(
                    (fmpq(*a.as_integer_ratio()) * fmpq(*b.as_integer_ratio()) for a, b in pairs), fmpq(0)
                )
                exact *= fmpq(*(0.1).as_integer_ratio())
                error = abs(fmpq(*computed[i, j].item().as_integer_ratio()) - exact)
                assert error <= fmpq(*errors[i, j].item().as_integer_ratio())


def test_weight_bounds_enclose_the_exact_weights_down_to_underflow():
    scores = torch.cat([torch.zeros(1), -torch.linspace(0.1, 760, 1500)]).double()
    lower, upper = weight_bounds(scores, torch.zeros_like(scores), torch.ones_like(scores, dtype=torch.bool))
    for score, low, high in zip(scores.tolist(), lower.tolist(), upper.tolist(), strict=True):
        assert arb(low) <= arb(score).exp()
        assert arb(score).exp() <= arb(high)
        # Below 2^-1000 the absolute allowance for underflow is no longer small beside the weight.
        assert high - low <= 2.0**-40 * high or high < 2.0**-960


def test_a_mass_too_small_for_float64_is_not_called_zero():
    q = torch.ones(1, 1, 1, 1, dtype=torch.float64)
    k = torch.tensor([0.0, -800.0], dtype=torch.float64).view(1, 2, 1, 1)
    v = torch.ones(1, 2, 1, 1, dtype=torch.float64)
    loose, tight = (certified_topk(q, k, v, epsilon=epsilon, scale=1.0) for epsilon in (1e-300, 0.0))
    assert loose.kept.tolist() == [[[[0]]]]
    assert loose.dropped_mass.item() > 0
    assert worst_violation(q, k, 1.0, loose.kept, loose.dropped_mass) is None
    assert tight.kept.tolist() == [[[[0, 1]]]]


def test_scores_with_unbounded_errors_keep_everything():
    q = torch.full((1, 1, 1, 2), 1e150, dtype=torch.float64)
    k = torch.tensor([[1e150, -1e150], [1e150, 1e120]], dtype=torch.float64).view(1, 2, 1, 2)
    result = certified_topk(q, k, torch.ones(1, 2, 1, 1, dtype=torch.float64), epsilon=0.9, scale=1.0)
    assert sorted(result.kept.flatten().tolist()) == [0, 1]
    assert result.dropped_mass.item() == 0


@pytest.mark.parametrize("options", [{}, {"window": 4}, {"causal": False}], ids=str)
@pytest.mark.parametrize("tile_size", [1, 3, 128])
def test_output_is_attention_over_the_kept_keys(options, tile_size):
    rng = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, n, h, 4, generator=rng, dtype=torch.float64) for n, h in ((9, 4), (15, 2), (15, 2))
    )
    result = certified_topk(3 * q, k, v, epsilon=0.1, tile_size=tile_size, **options)
    o, mass = reference_topk(3 * q, k, v, result.kept, **options)
    full, _ = reference_softmax(3 * q, k, v, **options)
    torch.testing.assert_close(result.o, o)
    assert (mass <= result.dropped_mass).all()
    # Claim sparse.dropped-mass; 1e-12 stands far above the rounding of these sums and far below 0.1.
    far = 2 * result.dropped_mass * v.norm(dim=-1).max()
    assert ((full - o).norm(dim=-1) <= far + 1e-12).all()
    assert (result.dropped_mass > 0).any()


def test_epsilon_zero_is_softmax_attention():
    q, k, v = random_inputs(torch.float64)
    result = certified_topk(q, k, v, epsilon=0.0)
    assert ((result.kept >= 0).sum(-1)[0, :, 0] == torch.arange(7, 16)).all()
    torch.testing.assert_close(result.o, reference_softmax(q, k, v)[0])


def test_packed_sequences_equal_separate_calls():
    q, k, v = random_inputs(torch.float32)
    packing = {"cu_seqlens": torch.tensor([0, 4, 4, 9]), "cu_seqlens_k": torch.tensor([0, 6, 8, 15])}
    packed = certified_topk(q, k, v, epsilon=0.1, **packing)
    for rows, keys in ((slice(0, 4), slice(0, 6)), (slice(4, 9), slice(8, 15))):
        alone = certified_topk(q[:, rows], k[:, keys], v[:, keys], epsilon=0.1)
        places = torch.where(alone.kept >= 0, alone.kept + keys.start, -1)
        assert torch.equal(packed.kept[:, rows, :, : places.shape[-1]], places)
        assert (packed.kept[:, rows, :, places.shape[-1] :] == -1).all()
        assert torch.equal(packed.o[:, rows], alone.o)
        assert torch.equal(packed.dropped_mass[:, rows], alone.dropped_mass)


def test_queries_that_see_nothing_keep_nothing():
    q, k, v = random_inputs(torch.float32, tokens=5, keys=2)
    result = certified_topk(q, k, v, epsilon=0.1)
    assert (result.kept[:, :3] == -1).all()
    assert (result.o[:, :3] == 0).all()
    assert (result.dropped_mass[:, :3] == 0).all()
    for tokens, keys in ((0, 4), (4, 0)):
        q, k, v = random_inputs(torch.float32, tokens=tokens, keys=keys)
        assert certified_topk(q, k, v, epsilon=0.1).kept.shape == (1, tokens, 1, 0)


def grouped(tokens, keys):
    """Four query heads on two key heads, so that gradients of keys and values add up over a group."""
    rng = torch.Generator().manual_seed(5)
    shapes = {"q": (2, tokens, 4, 5), "k": (2, keys, 2, 5), "v": (2, keys, 2, 3)}
    return {name: 2 * torch.randn(shape, generator=rng) for name, shape in shapes.items()}


@pytest.mark.parametrize("tile_size", [1, 4, 128])
@pytest.mark.parametrize(("tokens", "keys", "window"), [(9, 9, None), (5, 12, 4), (6, 3, None)])
def test_gradients_are_those_of_attention_to_the_kept_keys(tokens, keys, window, tile_size):
    tensors = grouped(tokens, keys)
    kept = certified_topk(**tensors, epsilon=0.2, window=window).kept
    assert (kept == -1).any(), "nothing is dropped here"

    def run(form, inputs):
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        o = form(**leaves, window=window)[0]
        return {"o": o.detach(), **gradients(leaves, o)}

    def certified(**inputs):
        return certified_topk(**inputs, epsilon=0.2, tile_size=tile_size)

    assert_agrees(run, certified, lambda **inputs: reference_topk(**inputs, kept=kept), tensors)


def test_gradients_of_packed_sequences_are_those_of_each():
    offsets, offsets_k = (0, 4, 9), (0, 6, 15)

    def packed(q, k, v):
        packing = {"cu_seqlens": torch.tensor(offsets), "cu_seqlens_k": torch.tensor(offsets_k)}
        return certified_topk(q, k, v, epsilon=0.1, **packing).o

    def apart(q, k, v):
        parts = []
        for n in range(2):
            rows, keys = slice(*offsets[n : n + 2]), slice(*offsets_k[n : n + 2])
            parts.append(certified_topk(q[:, rows], k[:, keys], v[:, keys], epsilon=0.1).o)
        return torch.cat(parts, dim=1)

    def run(form, inputs):
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        return gradients(leaves, form(**leaves))

    q, k, v = random_inputs(torch.float64)
    assert_agrees(run, packed, apart, {"q": q, "k": k, "v": v})


WRONG = {
    "epsilon must be at least 0 and below 1, but it is 1.": {"epsilon": 1},
    "budget must be at least 1, but it is 0.": {"budget": 0},
    "budget must be at least 8 to drop a mass of at most 0.01, but it is 7.": {"epsilon": 0.01, "budget": 7},
    "tile_size must be at least 1, but it is 0.": {"tile_size": 0},
    "v must be finite, but it contains nan.": {"v": torch.full((1, 8, 1, 2), torch.nan)},
    "q and k must have finite scores in float64, but some overflow.": {
        "q": torch.full((1, 3, 1, 4), 1e200, dtype=torch.float64),
        "k": torch.full((1, 8, 1, 4), 1e200, dtype=torch.float64),
        "v": torch.zeros(1, 8, 1, 2, dtype=torch.float64),
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_named(message):
    right = {
        "q": torch.zeros(1, 3, 1, 4),
        "k": torch.zeros(1, 8, 1, 4),
        "v": torch.zeros(1, 8, 1, 2),
        "epsilon": 0.5,
    }
    certified_topk(**right, budget=8)
    with pytest.raises(ValueError, match="must") as raised:
        certified_topk(**{**right, **WRONG[message]})
    assert str(raised.value) == message


def test_the_reference_checks_its_set():
    q, k, v = random_inputs(torch.float64)
    with pytest.raises(ValueError, match="kept must hold positions below 15 or -1, but it holds 15"):
        reference_topk(q, k, v, torch.full((1, 9, 1, 2), 15))
    with pytest.raises(ValueError, match="kept must be int64 of shape"):
        reference_topk(q, k, v, torch.zeros(1, 9, 1, 2))
