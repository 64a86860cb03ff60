"""Plain numbers and words on others' rules that do not follow from a certificate's cells are found."""

import copy

import pytest

from verify.checkers.kernel_summaries import faults

FIGURES = {"max_abs_error": 0.5, "rms_ratio": 0.1, "nonfinite": 0, "plain": {"max_ulp": 3.0, "bias": -2.0}}
OTHER = {"max_abs_error": 0.2, "rms_ratio": "nan", "nonfinite": 1, "plain": {"max_ulp": None, "bias": 1.0}}


def certificate():
    return {
        "cells": [
            {"class": "a", "output": FIGURES, "state": None, "rules": {"theirs": True}},
            {"class": "b", "output": OTHER, "state": FIGURES, "rules": {"theirs": False}},
        ],
        "gradients": [{"class": "b", "inputs": {"q": FIGURES}, "rules": {"theirs": False}}],
        "plain": {
            "output": {
                "max_abs_error": {"value": 0.5, "class": "a"},
                "rms_ratio": {"value": "nan", "class": "b"},
                "bias": {"value": -2.0, "class": "a"},
                "max_ulp": {"value": 3.0, "class": "a"},
            },
            "gradient of q": {"bias": {"value": -2.0, "class": "b"}},
        },
        "rules": [
            {"name": "theirs", "rule": "r", "passes": False, "inputs": 3, "failing": 2, "classes": ["b"]}
        ],
    }


def test_what_follows_has_no_faults():
    assert faults(certificate()) == []
    assert faults({"cells": [{"class": "a", "output": None, "state": None}]}) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("plain", "output", "max_abs_error", "value"), 0.2),
        (("plain", "output", "max_abs_error", "value"), 0.4),
        (("plain", "output", "max_abs_error", "class"), "b"),
        (("plain", "output", "bias", "value"), 2.0),
        (("plain", "output", "rms_ratio", "value"), 0.1),
        (("plain", "gradient of q", "bias", "value"), 0.0),
        (("plain", "gradient of k"), {"bias": {"value": 0.0, "class": "a"}}),
        (("rules", 0, "passes"), True),
        (("rules", 0, "inputs"), 2),
        (("rules", 0, "failing"), 1),
        (("rules", 0, "classes"), ["a"]),
    ],
)
def test_what_does_not_follow_is_found(path, value):
    data = copy.deepcopy(certificate())
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (fault,) = faults(data)
    assert fault.startswith(("plain", "rules"))
