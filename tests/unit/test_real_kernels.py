"""The example that certifies kernels of others: whom it asks, and the table it writes."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

from verify.audit.convention.convention import Convention
from verify.model.errors import EnvironmentProblem

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location(
        "certify_real_kernels", EXAMPLES / "certify_real_kernels.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def certificate(words, ratios=(0.5,), gradients=(), broken=(), bound=None):
    def cells(verdicts, figures):
        return [{"class": f"class-{i % 2}", "verdict": w, **figures} for i, w in enumerate(verdicts)]

    worst = [{"worst_ratio": x} for x in ratios]
    checked = [{"name": name, "verdict": "refuted"} for name in broken]
    return {
        "cells": cells(words, {"output": worst[0], "state": worst[-1] if len(worst) > 1 else None}),
        "gradients": cells(gradients, {"inputs": {"q": {"worst_ratio": 0.25}}}),
        "properties": [
            {"name": "causality", "verdict": "sampled"},
            {"name": "other", "verdict": None},
            *checked,
        ],
        "worst_case": {"derived": bound is not None, "worst_ratio": bound, "met": bound and bound <= 1},
        "summary": "Held.",
        "environment": {"packages": {"torch": "2.13"}, "python": "3.11", "commit": "abc"},
    }


def test_every_kernel_is_declared_by_name(example):
    kernels = example.kernels()
    assert len(kernels) == len(set(kernels)) >= 38
    for kernel in kernels:
        function = kernel.target.rpartition(":")[2].split(".")[0]
        shared, functions = Convention.tables(kernel.convention)
        own = functions.get(f"{kernel.mechanism}:{function}", functions.get(function, {}))
        # A convention of one function says everything at the top.
        assert bool(own) == bool(functions)
        assert {**shared, **own}["mechanism"] == kernel.mechanism
        request = kernel.request("fast")
        assert request.gradients == (request.loaded().gradients != "none")
        assert (request.classes is None) != kernel.target.startswith(example.INTERPRETER)


def test_targets_in_files_are_functions_there(example):
    for kernel in example.kernels():
        file, _, function = kernel.target.partition(":")
        if file.endswith(".py"):
            tree = ast.parse((EXAMPLES.parent / file).read_text("utf-8"))
            made = {x.name for x in tree.body if isinstance(x, ast.FunctionDef)}
            made |= {a.name for x in tree.body if isinstance(x, ast.ImportFrom) for a in x.names}
            assert function in made


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (certificate(["sampled"] * 3, (0.5, 0.75), bound=0.125), "held on 3: 0.75 | not asked | 0.12"),
        (
            certificate(["sampled", "undecided"], gradients=["sampled"]),
            "undecided on 2: 0.5 | held on 1: 0.25",
        ),
        (
            certificate(["sampled", "refuted", "refuted", "refuted"], gradients=["refuted"], bound=2.0),
            "**refuted** on 3 of 4: class-1, class-0 | **refuted** on 1 of 1: class-0 | exceeded",
        ),
        (
            certificate(["sampled"], broken=["finite"]),
            "**refuted** on 0 of 1: property finite | not asked | not derived",
        ),
    ],
)
def test_a_certificate_is_one_line(example, data, expected):
    line = example.row(example.Kernel("kda", "fla", "examples/a.py:f.__wrapped__"), data)
    assert line.startswith(f"| `a.py:f` | kda, fla | {expected}")


def test_the_page_gets_the_table_and_keeps_the_rest(example, tmp_path, monkeypatch, capsys):
    page, asked = tmp_path / "page.md", []
    page.write_text(f"before\n{example.BEGIN}\nold\n{example.END}\nafter\n", "utf-8")

    def certified(request, folder, *, cache, resume):
        asked.append((request.target, folder, resume))
        if "math" in request.target:
            raise EnvironmentProblem("it is not installed")
        return certificate(["sampled"]), False

    few = [kernel for kernel in example.kernels() if "sdpa" in kernel.target]
    monkeypatch.setattr(example, "certified", certified)
    monkeypatch.setattr(example, "kernels", lambda: few)
    monkeypatch.setattr(sys, "argv", ["x", "--page", str(page), "--results", str(tmp_path / "results")])
    for _ in range(2):
        example.main()
        text = page.read_text("utf-8")
        assert text.startswith("before\n<!--")
        assert text.endswith("-->\nafter\n")
        assert "old" not in text
        assert text.count("| `sdpa_backends.py:flash` | softmax, sdpa | held on 1: 0.5 |") == 1
        assert "torch 2.13, Python 3.11; attnproof at abc; budget fast." in text
    assert "left out: it is not installed" in capsys.readouterr().err
    assert [target for target, *_ in asked[:2]] == [
        f"examples/sdpa_backends.py:{x}" for x in ("math", "flash")
    ]
    assert len({folder for _, folder, _ in asked}) == 2
    assert all(resume for *_, resume in asked)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "nobody"], "no kernel has 'nobody' in its mechanism or name"),
        (["--only", "sdpa", "--page", "page.md"], "leave one of them out"),
        (["--page", "page.md"], "page.md is no file with a line '<!-- kernels of others: begin -->'"),
        (["--page", "nowhere.md"], "nowhere.md is no file"),
    ],
)
def test_what_would_lose_a_table_is_refused_before_an_hour_of_work(
    example, options, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("page.md").write_text("a page without a table\n", "utf-8")
    monkeypatch.setattr(example, "certified", None)
    monkeypatch.setattr(sys, "argv", ["x", *options])
    with pytest.raises(SystemExit) as left:
        example.main()
    assert left.value.code == 2
    assert said in capsys.readouterr().err
    assert Path("page.md").read_text("utf-8") == "a page without a table\n"
