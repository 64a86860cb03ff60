"""The pytest plugin, in projects of its own: a kernel that is right, one that is wrong, and bad requests."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from verify.audit.inputs.cells import classes
from verify.audit.mechanism import named
from verify.pytest_plugin import PROPERTIES

pytest_plugins = ["pytester"]

Run = Callable[..., pytest.RunResult]
BROKEN = Path(__file__).parents[1] / "adversarial" / "broken"
RIGHT = "kernels.delta.recurrent:recurrent_delta"
WRONG = f"{BROKEN / 'missing_scale.py'}:recurrent_gdn"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run pytest on one test file, with this plugin alone, whether it is installed or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("ATTNPROOF_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    def go(marker: str, *options: str, body: str = "certify()") -> pytest.RunResult:
        pytester.makepyfile(f"""
            import pytest

            @pytest.mark.certify({marker})
            def test_kernel(certify):
                {body}
        """)
        return pytester.runpytest_subprocess(
            "-p", "verify.pytest_plugin", "--strict-markers", "-W", "error", *options
        )

    return go


def test_one_item_per_class_property_and_dtype(run: Run) -> None:
    marker = f"target={RIGHT!r}, mechanism='delta', dtypes=['float32', 'bfloat16'], gradients=True"
    listed = run(marker, "--collect-only", "-q").stdout.str()
    for dtype in ("float32", "bfloat16"):
        for part in ("random", "integer", "gradients-of-random", "causality", "strided-inputs"):
            assert f"test_kernel[{dtype}-{part}]" in listed
    assert "gradients-of-integer" not in listed


def test_a_right_kernel_passes(run: Run, pytester: pytest.Pytester) -> None:
    marker = f"target={RIGHT!r}, mechanism='delta', classes=['integer']"
    result = run(marker, "-k", "integer or causality or confirmed", "--junitxml=report.xml", "-rs")
    result.assert_outcomes(passed=3, skipped=1, deselected=len(PROPERTIES) - 3)
    result.stdout.fnmatch_lines(["*no such inputs*"])
    suite = ElementTree.parse(pytester.path / "report.xml").getroot()[0]
    assert suite.get("tests") == "4"
    assert "test_kernel[float32-integer]" in {case.get("name") for case in suite.iter("testcase")}


def test_a_wrong_kernel_fails_with_reason_and_reproducer(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ncertify_results = certified")
    marker = f"target={WRONG!r}, mechanism='gdn'"
    result = run(marker, "-k", "float32-integer or repeated", "--junitxml=report.xml")
    result.assert_outcomes(passed=1, failed=2, deselected=len((*PROPERTIES, *classes(named("gdn")))) - 3)
    result.stdout.fnmatch_lines(
        [
            "refuted: *recurrent_gdn, float32, class 'integer'",
            "*reason: missing scale.*",
            "*reproduce: python *",
        ]
    )
    folder = next((pytester.path / "certified").iterdir())
    assert {"certificate.json", "reproduce.py", "input.safetensors"} <= {p.name for p in folder.iterdir()}
    failures = [
        case.find("failure") for case in ElementTree.parse(pytester.path / "report.xml").iter("testcase")
    ]
    assert any(failure is not None and "missing scale" in (failure.text or "") for failure in failures)


INTERRUPTED = """
import os, pathlib, signal
from kernels.delta.recurrent import recurrent_delta

here = pathlib.Path(__file__).parent
if (here / "broken").exists():
    raise RuntimeError("broken")

calls = []

def f(q, k, v, beta, **rest):
    calls.append(q.shape)
    if (here / "stop").exists() and len(calls) == 3:
        (here / "stop").unlink()
        os.kill(os.getppid(), signal.SIGINT)
    return recurrent_delta(q, k, v, beta, **rest)
"""


def test_an_interrupted_session_is_continued_and_a_finished_certificate_is_found_again(
    run: Run, pytester: pytest.Pytester
) -> None:
    """A kernel that breaks by a file nobody declared passes from the cache, and fails when made anew."""
    pytester.makeini("[pytest]\ncertify_results = certified")
    # Where the tests run as a background job of a shell, SIGINT is ignored.
    pytester.makeconftest("import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)")
    pytester.path.joinpath("kernel.py").write_text(INTERRUPTED, encoding="utf-8")
    pytester.path.joinpath("stop").touch()
    options = ("target='kernel.py:f', mechanism='delta', classes=['integer']", "-k", "float32-integer", "-s")
    run(*options)
    (journal,) = (pytester.path / "certified").glob("*/journal.jsonl")
    steps = journal.read_bytes().count(b"\n") - 1
    assert steps > 0
    result = run(*options, "--junitxml=report.xml")
    result.assert_outcomes(passed=1, deselected=len(PROPERTIES))
    result.stdout.fnmatch_lines([f"*resuming: {steps} steps were judged before*"])
    assert not journal.exists()
    assert len(list(ElementTree.parse(pytester.path / "report.xml").iter("testcase"))) == 1
    pytester.path.joinpath("broken").touch()
    run(*options).assert_outcomes(passed=1, deselected=len(PROPERTIES))
    result = run(*options, "--certify-fresh")
    result.assert_outcomes(failed=1, deselected=len(PROPERTIES))
    result.stdout.fnmatch_lines(["*RuntimeError: broken*"])


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("target='nowhere.py:f', mechanism='gdn', classes=['integer']", "there is no file 'nowhere.py'"),
        ("target='kernels.delta.recurrent:nothing', mechanism='delta', classes=['integer']", "no 'nothing'"),
    ],
)
def test_a_target_that_does_not_exist_fails_in_one_sentence(run: Run, marker: str, said: str) -> None:
    result = run(marker, "-k", "float32-integer")
    result.assert_outcomes(failed=1, deselected=len(PROPERTIES))
    result.stdout.fnmatch_lines([f"*{said}*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("target='a:f', mechanism='gnd'", "unknown mechanism 'gnd'"),
        ("target='a:f', mechanism='gdn', convention='flaa'", "unknown convention 'flaa'"),
        (
            "target='a:f', mechanism='gdn', dtypes=['float31']",
            "unknown dtype 'float31'; --dtype takes float64",
        ),
        ("target='a:f', mechanism='gdn', classes=['rondom']", "unknown input class 'rondom'"),
        ("target='a:f', mechanism='gdn', dtype='float32'", "unexpected keyword argument 'dtype'"),
    ],
)
def test_a_bad_marker_is_an_error_of_collection(run: Run, marker: str, said: str) -> None:
    result = run(marker)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said}*"])
    assert "Traceback" not in result.stdout.str()


def test_a_test_that_checks_nothing_is_an_error(run: Run) -> None:
    marker = f"target={RIGHT!r}, mechanism='delta', classes=['integer']"
    result = run(marker, "-k", "float32-integer", body="pass")
    result.assert_outcomes(passed=1, errors=1, deselected=len(PROPERTIES))
    result.stdout.fnmatch_lines(["*never called certify()*"])


def test_the_fixture_asks_for_its_marker(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(test_other="def test_kernel(certify): certify()")
    pytester.runpytest_subprocess("-p", "verify.pytest_plugin").stdout.fnmatch_lines(["*without a marker*"])


def test_loading_the_plugin_imports_nothing_heavy(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile("""
        import sys

        def test_nothing_heavy():
            assert not {"torch", "numpy", "sympy", "flint", "verify.audit"} & set(sys.modules)
    """)
    pytester.runpytest_subprocess("-p", "verify.pytest_plugin").assert_outcomes(passed=1)
