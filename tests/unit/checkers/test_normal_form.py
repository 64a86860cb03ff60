"""The decision procedure: equal keys only for equal values, on all nested sums and on random terms."""

import itertools
import random
from collections import defaultdict
from fractions import Fraction

import pytest

from verify.checkers.normal_form import NormalForm
from verify.checkers.polynomials import key
from verify.checkers.terms import IllFormed, Term, minus, read, substitute

SIZES = ({"n": 3, "m": 2, "i": 1, "j": 2}, {"n": 2, "m": 3, "i": 2, "j": 2})


def value(term: Term, names: dict[str, int]) -> Fraction:
    """A term's value where every variable and member has its own fixed random value."""
    head, *rest = term
    if head == "q":
        return Fraction(rest[0])
    if head == "v" and rest[0] in names:
        return Fraction(names[rest[0]])
    if head in ("v", "at"):
        indices = tuple(int(value(index, names)) for index in rest[1]) if head == "at" else ()
        source = random.Random(f"{rest[0]}{indices}")
        return Fraction(source.randint(1, 50), source.randint(1, 7))
    if head == "+":
        return sum((value(item, names) for item in rest), Fraction(0))
    if head == "*":
        result = Fraction(1)
        for item in rest:
            result *= value(item, names)
        return result
    if head == "^":
        return value(rest[0], names) ** rest[1]
    bound, lower, upper, body = rest
    numbers = range(int(value(lower, names)), int(value(upper, names)) + 1)
    return sum((value(body, {**names, bound: number}) for number in numbers), Fraction(0))


def same(one: Term, other: Term) -> bool:
    forms = NormalForm()
    return forms.is_zero(forms.of(minus(one, other)))


def member(family: str, *indices: str) -> Term:
    return ("at", family, tuple(("v", index) for index in indices))


def total(body: Term, *bound: str) -> Term:
    for name in bound:
        body = ("sum", name, ("q", "1"), ("v", "n"), body)
    return body


def test_every_pattern_of_indices_under_three_sums_is_told_apart() -> None:
    groups = defaultdict(list)
    for indices in itertools.product("ijkl", repeat=4):
        term = total(("*", member("b", *indices[:2]), member("b", *indices[2:])), "i", "j", "k")
        groups[key(NormalForm().of(term))].append(term)
    for terms in groups.values():
        for sizes in SIZES:
            assert len({value(term, {**sizes, "l": 2}) for term in terms}) == 1
    representatives = [value(terms[0], {**SIZES[0], "l": 2}) for terms in groups.values()]
    assert len(set(representatives)) == len(representatives)


def test_one_family_with_three_indices_is_told_apart() -> None:
    assert not same(total(member("x", "i", "i", "j"), "i"), total(member("x", "i", "j", "j"), "i"))
    assert not same(total(member("x", "i", "i", "j"), "i", "j"), total(member("x", "i", "j", "j"), "i", "j"))
    assert same(total(member("x", "i", "i", "j"), "i", "j"), total(member("x", "k", "k", "l"), "l", "k"))


def _index(source: random.Random, bound: list[str]) -> Term:
    kind = source.random()
    if kind < 0.2:
        return ("q", str(source.randint(1, 2)))
    name: Term = ("v", source.choice(bound if bound and kind < 0.85 else ["i", "j"]))
    return ("+", name, ("q", "1")) if kind > 0.9 else name


def _term(source: random.Random, depth: int, bound: list[str]) -> Term:
    kind = source.random()
    if depth == 0 or kind < 0.15:
        leaves = [("q", str(source.randint(-1, 2))), ("v", source.choice(["x", "i", "j", *bound]))]
        leaves += [("at", "a", (_index(source, bound),))] * 4
        leaves += [("at", "b", (_index(source, bound), _index(source, bound)))] * 4
        return source.choice(leaves)
    if kind < 0.6:
        head = "+" if kind < 0.35 else "*"
        return (head, _term(source, depth - 1, bound), _term(source, depth - 1, bound))
    if kind < 0.65:
        return ("^", _term(source, depth - 1, bound), source.choice([-1, 2]))
    name = source.choice(["i", "j", "k"])
    lower = source.choice([("q", "1"), ("q", "2"), ("v", "j")])
    upper = source.choice([("v", "n"), ("v", "m"), ("v", source.choice(bound or ["n"]))])
    return ("sum", name, lower, upper, _term(source, depth - 1, [*bound, name]))


def test_random_terms_of_equal_normal_form_have_equal_values() -> None:
    source, groups, compared = random.Random(7), defaultdict(set), 0
    for _ in range(12000):
        term = _term(source, source.randint(1, 4), [])
        forms = NormalForm()
        try:
            form = forms.of(term)
        except IllFormed:
            continue
        if not forms.counted:
            groups[key(form)].add(term)
    for terms in groups.values():
        for sizes in SIZES:
            values = set()
            for term in terms:
                try:
                    values.add(value(term, sizes))
                except ZeroDivisionError:
                    continue
            compared += max(0, len(terms) - 1)
            assert len(values) <= 1, terms
    assert compared > 500


x, y, n = ("v", "x"), ("v", "y"), ("v", "n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("exp", ("+", x, y)), ("*", ("exp", x), ("exp", y))),
        (("exp", ("*", ("q", "2"), x)), ("^", ("exp", x), 2)),
        (("log", ("exp", x)), x),
        (("log", ("*", x, y)), ("+", ("log", x), ("log", y))),
        (("log", ("^", x, -1)), ("*", ("q", "-1"), ("log", x))),
        (("exp", ("log", ("+", x, y))), ("+", x, y)),
        (("sum", "j", ("q", "1"), n, ("q", "3")), ("*", ("q", "3"), n)),
        (("sum", "j", n, n, member("a", "j")), member("a", "n")),
        (("sum", "j", ("+", n, ("q", "1")), n, member("a", "j")), ("q", "0")),
        (
            total(("*", member("a", "i"), member("b", "j")), "i", "j"),
            ("*", total(member("a", "i"), "i"), total(member("b", "i"), "i")),
        ),
        (("*", ("+", x, y), ("^", ("+", y, x), -1)), ("q", "1")),
    ],
)
def test_true_identities_are_recognised(one: Term, other: Term) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("exp", ("+", x, y)), ("+", ("exp", x), ("exp", y))),
        (("exp", ("*", x, y)), ("*", ("exp", x), ("exp", y))),
        (("log", ("+", x, y)), ("+", ("log", x), ("log", y))),
        (("log", ("q", "2")), ("q", "1")),
        (("exp", ("*", ("q", "1/2"), ("log", x))), x),
        (
            total(("*", member("a", "i"), member("b", "i")), "i"),
            ("*", total(member("a", "i"), "i"), total(member("b", "i"), "i")),
        ),
        (("^", total(member("a", "i"), "i"), 2), total(("^", member("a", "i"), 2), "i")),
        (("^", total(member("a", "i"), "i"), -1), total(("^", member("a", "i"), -1), "i")),
        (("exp", total(member("a", "i"), "i")), total(("exp", member("a", "i")), "i")),
        (("sum", "j", ("q", "1"), n, member("a", "j")), ("sum", "j", ("q", "0"), n, member("a", "j"))),
        (
            ("sum", "i", ("q", "1"), n, ("sum", "j", ("q", "1"), ("v", "i"), member("b", "i", "j"))),
            ("sum", "i", ("q", "1"), n, ("sum", "j", ("q", "1"), ("v", "i"), member("b", "j", "i"))),
        ),
        (("sum", "i", ("q", "1"), n, ("v", "i")), ("*", n, ("v", "i"))),
        (("at", "a", (("q", "1"), ("q", "2"))), ("at", "a", (("q", "2"), ("q", "1")))),
        (("at", "a", (x,)), ("at", "b", (x,))),
        (("v", "a"), ("at", "a", (("q", "1"),))),
    ],
)
def test_false_identities_are_not(one: Term, other: Term) -> None:
    assert not same(one, other)


@pytest.mark.parametrize("crafted", ["x>^1*<y", "#0;", "@1.0;", "$0.0;", "?0", "a[{1}", ""], ids=repr)
def test_names_cannot_imitate_the_procedures_own(crafted: str) -> None:
    if "[" in crafted:
        assert not same(read(["v", crafted]), ("at", "a", (("q", "1"),)))
    else:
        with pytest.raises(IllFormed):
            read(["v", crafted])


@pytest.mark.parametrize(
    "malformed",
    [
        [],
        "x",
        ["q", "1/0x"],
        ["q", 0.5],
        ["v"],
        ["v", 3],
        ["at", "a", []],
        ["at", "a", "ij"],
        ["^", ["v", "x"], 0.5],
        ["^", ["v", "x"], True],
        ["+"],
        ["sum", "j", ["q", "1"], ["v", "n"]],
        ["sin", ["v", "x"]],
    ],
    ids=repr,
)
def test_what_is_not_a_term_is_refused(malformed: object) -> None:
    with pytest.raises((IllFormed, ValueError)):
        read(malformed)


def test_substitution_refuses_capture() -> None:
    with pytest.raises(IllFormed, match="capture"):
        substitute(total(("*", x, member("a", "i")), "i"), "x", ("v", "i"))


def test_division_by_a_vanishing_polynomial_is_refused() -> None:
    with pytest.raises(IllFormed, match="division by zero"):
        NormalForm().of(("^", minus(("*", x, y), ("*", y, x)), -1))


def test_side_conditions_are_recorded() -> None:
    forms = NormalForm()
    forms.of(("*", ("^", x, -1), ("log", y), ("sum", "j", ("q", "1"), n, ("q", "1"))))
    assert [key(item) for item in forms.inverted] == ["{1*<x>^1}"]
    assert "{1*<y>^1}" in [key(item) for item in forms.logged]
    assert [key(item) for item in forms.counted] == ["{1*<n>^1}"]


def test_every_factor_of_a_logarithm_is_recorded() -> None:
    forms = NormalForm()
    forms.of(("log", ("*", x, y)))
    assert {"{1*<x>^1}", "{1*<y>^1}"} <= {key(item) for item in forms.logged}


def test_bound_names_of_different_depth_do_not_meet() -> None:
    def nested(*indices: str) -> Term:
        deep = ("exp", total(("exp", total(member("x", *indices), "k")), "j"))
        return total(("*", deep, ("exp", total(member("y", "i", "k"), "k"))), "i")

    assert same(nested("i", "j", "k"), nested("i", "j", "k"))
    for other in (("j", "i", "k"), ("i", "i", "k"), ("j", "j", "k"), ("i", "k", "j")):
        assert not same(nested("i", "j", "k"), nested(*other))
