"""Builders of small results: a claim with every form of evidence, a passing and a failing kernel."""

import math
from typing import Any

from verify.model import certificate

ENVIRONMENT = {
    "attnproof": "0.1.0",
    "python": "3.11.7",
    "platform": "Linux",
    "packages": {"sympy": "1.14.0"},
    "commit": "abc123",
    "seed": 1,
}

RHO = ["v", "rho"]
V1, V2 = ["at", "v1", [["v", "c"]]], ["at", "v2", [["v", "c"]]]
SHARE = ["+", ["q", "1"], ["*", ["q", "-1"], ["^", RHO, 2]]]
READ = ["+", ["*", SHARE, V1], ["*", RHO, V2]]


RECORD = {
    "fails": r"Nothing of $v_1$ is lost, <b>ever</b>.",
    "believed": "A rule that corrects only the error.",
    "catch": r"The state answers $\rho v_1$.",
    "gap": "Exactly $16/25$.",
    "witness": ["shown by delta-read"],
    "smallest": "Not established.",
    "repair": "The closed form.",
    "repaired_by": ["softmax.simplex", "softmax.fisher", "delta.overwrite"],
    "search": "counterexamples.delta._search:unit_keys",
}
"""What a counterexample's certificate says of itself; of its repairs one has no page in these results."""


def chain() -> dict[str, Any]:
    """A derivation with one step of two kinds of support."""
    step = {
        "label": "unit keys <b>bold</b>",
        "rule": "use hypothesis",
        "before": ["v", "o"],
        "after": READ,
        "relation": "=",
        "unfold": ["second write"],
        "splits": [],
        "uses": [["unit", ["v", "rho"]]],
        "variable": None,
        "terms": [],
        "latex": {"before": "o", "after": r"\left(1-\rho^{2}\right) {v1}_{c} + \rho {v2}_{c}"},
    }
    equation = {"lhs": ["v", "o"], "rhs": READ, "latex": "o = 1"}
    setting = {
        "definitions": [{"name": "second write", "free": ["c"], "guards": [], **equation}],
        "hypotheses": [{"name": "unit", **equation}],
        "positive": ["rho"],
        "nonnegative": [],
        "nonzero": [["v", "rho"]],
        "nonempty": [["v", "n"]],
        "order": [],
        "distinct": [["i", "j"]],
        "instances": [{}],
    }
    goal = {"lhs": ["v", "o"], "relation": "=", "rhs": READ, "latex": r"o = 1 - \rho^{2}"}
    return {"title": "reading", "setting": setting, "goal": goal, "steps": [step]}


def item(kind: str, strength: str, data: dict[str, Any], word: str = "proved") -> dict[str, Any]:
    """An obligation with one word on it."""
    check = {"by": "a checker 1.0", "role": "checker", "verdict": word, "detail": "looked at 1 < 2"}
    return {
        "kind": kind,
        "label": f"shown by {kind}",
        "strength": strength,
        "best": "proved",
        "sizes": "",
        "verdict": word,
        "checks": [check],
        "data": data,
    }


def claim(claim_id: str = "delta.overwrite", **changes: Any) -> dict[str, Any]:
    """A claim certificate, not yet sealed."""
    writes = [
        {"beta": "1", "key": ["1", "0"], "value": ["1", "0"]},
        {"beta": "1", "key": ["3/5", "4/5"], "value": ["0", "1"]},
    ]
    witness = {"writes": writes, "query": ["1", "0"], "output": ["16/25", "3/5"], "unit": True}
    query = {"smtlib": "(set-logic QF_NRA)\n(assert (< x 0))\n(check-sat)\n", "expect": "unsat"}
    power = {"term": ["^", ["v", "a"], 10], "values": {"a": "49/50"}, "above": "817/1000"}
    number = {**item("inequality", "B", power), "label": "0.98 to the power 10"}
    induction = {
        "title": "every n",
        "variable": "n",
        "first": ["q", "1"],
        "lhs": ["v", "o"],
        "rhs": RHO,
        "free": ["i"],
        "latex": "o = n",
        "base": chain(),
        "step": chain(),
    }
    parts = [
        {
            "statement": r"Reading gives $1-\rho^2$, and <script>alert(1)</script> is text.",
            "refutes": False,
            "verdict": "proved",
            "word": "proved",
            "evidence": [item("derivation", "C", chain()), item("smt", "S", query), number],
        },
        {
            "statement": "The coefficient is $0.98$ (printed).",
            "refutes": True,
            "verdict": "proved",
            "word": "refuted",
            "evidence": [item("delta-read", "E", witness), item("induction", "C", induction)],
        },
    ]
    mutants = [
        {"name": "sign", "description": "+ for −", "verdict": "refuted", "rejected": True, "detail": "no"},
        {"name": "kept", "description": "nothing", "verdict": "proved", "rejected": False, "detail": ""},
    ]
    return {
        "format": certificate.CLAIM_FORMAT,
        "version": 1,
        "id": claim_id,
        "room": "counterexamples",
        "title": "The delta rule overwrites",
        "statement": r"For $\rho\in\mathbb R$ the share is $1-\rho^2$.",
        "remark": "A remark.",
        "source": "article A, section 3",
        "status": "X",
        "scope": "every K",
        "variables": [{"latex": r"k_1", "domain": r"\mathbb{R}^K"}],
        "assumptions": [{"text": "zero state", "cited": False}, {"text": "a theorem", "cited": True}],
        "asked": "KC",
        "reached": "SEC",
        "verdict": "proved",
        "parts": parts,
        "mutants": mutants,
        "source_sha256": "0" * 64,
        "environment": ENVIRONMENT,
        **changes,
    }


def class_row(name: str, ratio: float | str, verdict: str) -> dict[str, Any]:
    return {
        "name": name,
        "about": f"why {name}",
        "cells": 1,
        "verdict": verdict,
        "worst_ratio": ratio,
        "worst_over_deviation": 1.5,
        "max_abs_error": 1e-7,
        "rms_ratio": 2e-7,
    }


def cell(name: str, errors: list[float | str], ratio: float | str, verdict: str) -> dict[str, Any]:
    output = {
        "max_abs_error": 1e-7,
        "max_abs_reference": 1.0,
        "worst_ratio": ratio,
        "worst_over_deviation": 1.5,
        "rms_ratio": 2e-7,
        "nonfinite": 0,
        "worst_at": {"b": 0, "t": 1, "h": 0},
        "per_token": {"error": errors, "tolerance": [1e-6 * math.sqrt(t + 1) for t in range(len(errors))]},
    }
    return {
        "class": name,
        "shape": {"B": 1, "T": len(errors), "H": 1, "HV": 1, "K": 4, "V": 4},
        "seed": 1,
        "initial_state": False,
        "verdict": verdict,
        "reference": "exact",
        "output": output,
        "state": None,
        "problem": None,
        "seconds": 0.1,
    }


def kernel(verdict: str = "sampled", **changes: Any) -> dict[str, Any]:
    """A kernel certificate, not yet sealed; the refuted one has a reproducer."""
    bad = verdict == "refuted"
    finding = {"reason": "decay after erase", "detail": "matches that variant", "evidence": "12 of 12"}
    reproducer = {
        "script": "reproduce.py",
        "data": "input.safetensors",
        "shape": {"B": 1, "T": 2, "H": 1, "HV": 1, "K": 1, "V": 1},
        "class": "gate-zero",
        "observed": "token 1 is nan",
    }
    return {
        "format": certificate.KERNEL_FORMAT,
        "version": 1,
        "target": {
            "requested": "kernels.gdn:chunked",
            "resolved": "kernels.gdn.chunked:chunked",
            "file": "chunked.py",
            "sha256": "1" * 64,
            "dispatches_to": "other.module:function",
            "triton": False,
            "python": "3.11.7",
            "torch": "2.13.0",
        },
        "mechanism": "gdn",
        "convention": {"name": "ours", "mechanism": "gdn", "form": "chunked", "layout": "bthk"},
        "dtype": "float32",
        "budget": "fast",
        "seed": 0,
        "verdict": verdict,
        "summary": "Held on every input tried.",
        "model": {
            "forms": ["recurrent"],
            "compute_dtype": "float32",
            "output_dtype": "float32",
            "state_dtype": "float32",
            "runs": 32,
            "false_alarm": 1e-9,
            "compared_numbers": 100,
            "assumptions": ["roundings are independent"],
        },
        "classes": [
            class_row("gaussian", 0.31, "sampled"),
            class_row("gate-zero", "nan" if bad else 0.0, verdict),
        ],
        "cells": [
            cell("gaussian", [1e-8, 0.0, 3e-8], 0.31, "sampled"),
            cell("gate-zero", [0.0, "nan", 1e-7] if bad else [0.0] * 3, "nan" if bad else 0.0, verdict),
        ],
        "properties": [
            {"name": "causality", "statement": "no future", "verdict": verdict, "detail": "ok"},
            {"name": "split", "statement": "resume", "verdict": None, "detail": "takes no initial state"},
        ],
        "findings": [finding] if bad else [],
        "samples": [],
        "reproducer": reproducer if bad else None,
        "environment": ENVIRONMENT,
        **changes,
    }
