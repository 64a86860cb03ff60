"""pytest plugin: one test function per kernel, one test item per input class, property and dtype.

    @pytest.mark.certify(target="my_kernels.py:chunk_kda", mechanism="kda", convention="fla")
    def test_chunk_kda(certify):
        certify()

The kernel is certified once per marker and dtype, with the classes of the items that were selected, when the
first of them runs. An item passes when nothing that it names was refuted or left undecided, and is skipped
when its property does not apply to the kernel.

A finished certificate is found again while nothing it depends on changed. With ``certify_results`` an
interrupted session is continued too: what was judged before is not judged again. ``--certify-fresh`` does
without both.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROPERTIES = (
    "causality",
    "split and resume",
    "separate sequences and heads",
    "strided inputs",
    "packed sequences",
    "repeated run",
    "batch permutation",
    "head permutation",
    "batch invariance",
    "memory around inputs",
    "expanded inputs",
    "absent inputs",
    "special cases",
    "chunk sizes",
    "no tokens",
    "index arithmetic",
    "inputs unchanged",
    "finite",
    "exact on integers",
    "reference confirmed",
)
"""The names of the properties in a certificate."""
_OF_ALL_CELLS = PROPERTIES[-4:]
_NEUTRAL = "random"
_MARKER = (
    "certify(target, mechanism, convention='ours', dtypes=('float32',), budget='fast', seed=0, classes=None, "
    "gradients=False, reference='float64'): certify a kernel; the test calls the fixture certify, one item "
    "per class and property."
)

Check = Callable[[], dict[str, Any]]
"""Fails the test when the item's part of the certificate is not fulfilled; returns the certificate."""


@dataclass(frozen=True)
class Request:
    """What a marker asks for."""

    target: str
    mechanism: str
    convention: str = "ours"
    dtypes: tuple[str, ...] = ("float32",)
    budget: str = "fast"
    seed: int = 0
    classes: tuple[str, ...] | None = None
    gradients: bool = False
    reference: str = "float64"


@dataclass(frozen=True)
class Part:
    """The part of a certificate that one item looks at.

    Args:
        request: the marker.
        dtype: of q, k and v.
        kind: ``"class"``, ``"gradients"`` (of a class) or ``"property"``.
        name: of the class or property.
    """

    request: Request
    dtype: str
    kind: str
    name: str

    @property
    def label(self) -> str:
        words = {"class": "", "gradients": "gradients of ", "property": ""}[self.kind]
        return f"{self.dtype}-{words}{self.name}".replace(" ", "-")


Made = tuple[dict[str, Any], Path] | str
"""A certificate and its folder, or why there is none."""
_certificates = pytest.StashKey[dict[tuple[Request, str], Made]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where certificates and reproducers go, and whether earlier ones are taken."""
    parser.addini(
        "certify_results", "folder of the certificates; by default pytest's temporary one", default=""
    )
    parser.getgroup("certify").addoption(
        "--certify-fresh",
        action="store_true",
        help="certify anew: take no earlier certificate, and nothing an interrupted session judged",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item per class, property and dtype, for a test with the fixture and the marker."""
    if "_certified_part" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("certify")
    if marker is None:
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid} asks for the fixture certify without a marker; "
            "add @pytest.mark.certify(target=..., mechanism=...)"
        )
    parts = list(_parts(_request(marker), metafunc.definition.nodeid))
    metafunc.parametrize("_certified_part", parts, ids=[part.label for part in parts], indirect=True)


def _request(marker: pytest.Mark) -> Request:
    """The marker's arguments, lists made tuples."""
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in marker.kwargs.items()
    }
    try:
        return Request(*marker.args, **named)
    except TypeError as error:
        raise pytest.Collector.CollectError(f"marker certify: {error}; it is {_MARKER}") from None


def _parts(request: Request, node: str) -> Iterator[Part]:
    from verify.audit.convention.convention import Convention
    from verify.audit.inputs.cells import cells, gradient_cells
    from verify.model.errors import AttnproofError, unknown_name

    try:
        convention = Convention.load(request.convention, request.mechanism, request.target)
        for dtype in request.dtypes:
            cases = list(cells(request.mechanism, dtype, convention, request.budget, request.seed))
            known = tuple(dict.fromkeys(case.name for case in cases))
            chosen = known if request.classes is None else request.classes
            if missing := [name for name in chosen if name not in known]:
                raise unknown_name("input class", missing[0], known)
            yield from (Part(request, dtype, "class", name) for name in chosen)
            if request.gradients:
                differentiated = {case.name for case in gradient_cells(cases, request.budget)}
                wanted = (name for name in chosen if name in differentiated)
                yield from (Part(request, dtype, "gradients", name) for name in wanted)
            yield from (Part(request, dtype, "property", name) for name in PROPERTIES)
    except AttnproofError as error:
        raise pytest.Collector.CollectError(f"{node}: {error}") from None


@pytest.fixture
def _certified_part(request: pytest.FixtureRequest) -> Part:
    part: Part = request.param
    return part


@pytest.fixture
def certify(
    request: pytest.FixtureRequest, _certified_part: Part, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Check]:
    """Call it: fails with the certifier's reason where this item's class or property is not fulfilled."""
    called = False

    def check() -> dict[str, Any]:
        nonlocal called
        called = True
        data, folder = _certificate(request.session, _certified_part, tmp_path_factory)
        _judge(_certified_part, data, folder)
        return data

    yield check
    if not called:
        pytest.fail("the test never called certify(), so nothing was checked", pytrace=False)


def _certificate(
    session: pytest.Session, part: Part, temporary: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """The certificate for one marker and dtype, made once per session."""
    made = session.stash.setdefault(_certificates, {})
    key = part.request, part.dtype
    if key not in made:
        results = session.config.getini("certify_results")
        name = "".join(c if c.isalnum() else "-" for c in f"{part.request.target}-{part.dtype}").strip("-")
        folder = session.config.rootpath / results / name if results else temporary.mktemp("certify") / name
        fresh = session.config.getoption("certify_fresh")
        made[key] = _make(part, _classes(session, part), folder, fresh)
    found = made[key]
    if isinstance(found, str):
        pytest.fail(found, pytrace=False)
    return found


def _make(part: Part, classes: tuple[str, ...] | None, folder: Path, fresh: bool) -> Made:
    from verify.audit.record.finished import certified
    from verify.audit.request import Request as Asked
    from verify.model.environment import cache_folder
    from verify.model.errors import AttnproofError

    asked = part.request
    request = Asked(
        asked.target,
        asked.mechanism,
        asked.convention,
        dtype=part.dtype,
        budget=asked.budget,
        seed=asked.seed,
        classes=classes,
        gradients=asked.gradients,
        reference=asked.reference,
    )
    try:
        data, _ = certified(
            request, folder, cache=None if fresh else cache_folder(), resume=not fresh, say=print
        )
    except AttnproofError as error:
        return str(error)
    return data, folder


def _classes(session: pytest.Session, part: Part) -> tuple[str, ...] | None:
    """The classes that the selected items need; None for all of them."""
    parts = [
        item.callspec.params.get("_certified_part") for item in session.items if hasattr(item, "callspec")
    ]
    same = [p for p in parts if isinstance(p, Part) and (p.request, p.dtype) == (part.request, part.dtype)]
    if any(p.kind == "property" and p.name in _OF_ALL_CELLS for p in same):
        return part.request.classes
    named = tuple(dict.fromkeys(p.name for p in same if p.kind != "property"))
    return named or part.request.classes or (_NEUTRAL,)


def _judge(part: Part, data: dict[str, Any], folder: Path) -> None:
    """Fail or skip the test where the certificate says so."""
    if part.kind == "property":
        found = [entry for entry in data["properties"] if entry["name"] == part.name]
        if not found or found[0]["verdict"] is None:
            pytest.skip(found[0]["detail"] if found else "the selected classes have no such inputs")
    else:
        cells = data["cells" if part.kind == "class" else "gradients"]
        found = [entry for entry in cells if entry["class"] == part.name]
    bad = [entry for entry in found if entry["verdict"] in ("refuted", "undecided")]
    if bad or not found:
        pytest.fail(_message(part, data, bad, len(found), folder), pytrace=False)


def _message(part: Part, data: dict[str, Any], bad: list[dict[str, Any]], total: int, folder: Path) -> str:
    """What failed, why, and how to see it again."""
    verdict = "refuted" if any(entry["verdict"] == "refuted" for entry in bad) else "undecided"
    lines = [f"{verdict}: {part.request.target}, {part.dtype}, {part.kind} {part.name!r}"]
    if part.kind == "property":
        lines.append(f"  not shown: {bad[0]['statement']}; {bad[0]['detail']}")
    else:
        lines.append(f"  {len(bad)} of {total} inputs{_worst(bad)}")
        lines += [f"  {m}" for m in dict.fromkeys(e["problem"]["message"] for e in bad if e["problem"])]
    for finding in data["findings"]:
        lines.append(f"  reason: {finding['reason']}. {finding['detail']}")
        lines.append(f"    {finding['evidence']}")
    if data["reproducer"]:
        lines.append(f"  reproduce: python {folder / data['reproducer']['script']}")
    return "\n".join([*lines, f"  certificate: {folder / 'certificate.json'}"])


def _worst(entries: list[dict[str, Any]]) -> str:
    """The largest error of some cells over its tolerance, as the end of a sentence."""
    measured = [figures for e in entries for figures in (e.get("inputs") or {}).values()]
    measured += [e[part] for e in entries for part in ("output", "state") if e.get(part)]
    ratios = [float(figures["worst_ratio"]) for figures in measured]
    return f", worst error / tolerance {max(ratios):.3g}" if ratios else ""
