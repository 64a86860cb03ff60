"""``attnproof report``: a results folder becomes a folder of pages that open from disk, without network."""

import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError

from verify.model.errors import RequestError
from verify.report import (
    claim_plots,
    counterexample,
    evidence,
    gradients,
    kernel_plots,
    numbers,
    overview,
    plain_numbers,
    printed,
    show,
    terms,
    words,
)
from verify.report.mathml import domain, formula, prose
from verify.report.plots import Plot
from verify.report.results import Broken, Kernel, Results, load

MARK = '<meta name="generator" content="attnproof report">'
"""How a folder made here is recognised before it is replaced."""
CONTENTS = ("claims", "certify", "plots", "style.css", "misprints.html", "numbers.html", "index.html")

Progress = Callable[[int, int], None]
"""Called with the number of pages written and the number of all pages."""
Placed = tuple[tuple[str, Plot], ...]
"""Figures, each with its path from the top of the report."""


def write(results: Path, out: Path, progress: Progress | None = None) -> Path:
    """Write the report; the same result files give the same bytes.

    Args:
        results: folder with ``claims/*.json`` and ``certify/*/certificate.json``.
        out: folder for the report; an earlier report there is replaced.
        progress: told after every page.

    Returns:
        The report's ``index.html``.

    Raises:
        RequestError: there are no results, or ``out`` holds something that is not a report.
    """
    found = load(results)
    _clear(out)
    site = _Site(out, _environment(), len(found.claims) + len(found.kernels) + 3, progress)
    pages = frozenset(claim["id"] for claim in found.claims)
    claims = tuple(claim for claim in found.claims if site.claim(claim, pages))
    kernels = tuple(kernel for kernel in found.kernels if site.kernel(kernel))
    broken = sorted((*found.broken, *site.broken), key=lambda item: item.file)
    return site.overview(Results(claims, kernels, tuple(broken)))


def _clear(out: Path) -> None:
    """Remove an earlier report, and nothing else."""
    if not out.exists():
        return
    index = out / "index.html"
    if not out.is_dir() or (
        any(out.iterdir()) and not (index.is_file() and MARK in index.read_text("utf-8"))
    ):
        raise RequestError(f"{out} is not empty and holds no attnproof report; choose another folder")
    for name in CONTENTS:
        place = out / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("verify.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "domain": domain,
        "prose": prose,
        "formula": formula,
        "term": terms.latex,
        "scalar": show.scalar,
        "number": show.number,
        "heat": show.heat,
        "first_ones": show.first,
        "left_out": show.left_out,
        "quote": quote,
    }
    environment.globals |= {"words": words, "shape": show.shape, "mark": MARK}
    return environment


class _Site:
    """Renders pages into a folder; certificates whose evidence is malformed end up in ``broken``."""

    def __init__(self, out: Path, environment: Environment, pages: int, progress: Progress | None) -> None:
        self.broken: list[Broken] = []
        self._out = out
        self._environment = environment
        self._pages = pages
        self._progress = progress
        self._done = 0
        self._numbers: list[numbers.Stated] = []
        self._printed: list[tuple[dict[str, Any], tuple[printed.Printed, ...]]] = []
        self._file("style.css", (Path(__file__).parent / "static" / "style.css").read_bytes())

    def claim(self, data: dict[str, Any], pages: Collection[str]) -> bool:
        """The page of one claim, with links to ``pages`` alone; false when it cannot be shown."""
        return self._attempt(f"claims/{data['id']}.json", lambda: self._claim(data, pages))

    def kernel(self, kernel: Kernel) -> bool:
        """The page of one kernel certificate; false when it cannot be shown."""
        return self._attempt(f"certify/{kernel.slug}/certificate.json", lambda: self._kernel(kernel))

    def overview(self, results: Results) -> Path:
        """The first page, and those on misprints and numbers that it links to."""
        classes, kernel_rows = overview.heat_map(results.kernels)
        misprints = overview.misprints(results.claims)
        self._page("misprints.html", "misprints.html", misprints=misprints)
        self._page("numbers.html", "numbers.html", numbers=self._numbers, printed=self._printed)
        return self._page(
            "index.html",
            "index.html",
            results=results,
            topics=overview.topics(results.claims),
            totals=overview.words(list(results.claims)),
            misprints=misprints,
            numbers=self._numbers,
            classes=classes,
            kernel_rows=kernel_rows,
            environments=overview.environments(results),
        )

    def _attempt(self, file: str, make: Callable[[], None]) -> bool:
        """Schemas leave the data of evidence open, so a sealed file may still hold what nobody can draw."""
        try:
            make()
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            TemplateError,
        ) as problem:
            why = f"its evidence is malformed and cannot be shown ({type(problem).__name__}: {problem})"
            self.broken.append(Broken(file, why))
            return False
        return True

    def _claim(self, data: dict[str, Any], pages: Collection[str]) -> None:
        bodies = [
            [evidence.body(item["kind"], item["data"]) for item in part["evidence"]] for part in data["parts"]
        ]
        plots = _placed(data["id"], claim_plots.figures(data))
        row, stated = overview.claim_row(data), numbers.stated(data)
        counter = counterexample.view(data, pages)
        content = {"claim": data, "bodies": bodies, "row": row, "counter": counter}
        self._page(f"claims/{data['id']}.html", "claim.html", plots, **content)
        self._numbers += [stated] if stated.parts else []
        self._printed += [(data, rows)] if (rows := printed.printed(data)) else []

    def _kernel(self, kernel: Kernel) -> None:
        files = kernel.reproducer()
        gradient_rows = gradients.rows(kernel.data.get("gradients", []))
        script = (kernel.data["reproducer"] or {}).get("script")
        wrong = plain_numbers.refuted(kernel.data)
        plots = _placed(kernel.slug, kernel_plots.figures(kernel.data))
        tokens = [placed for placed in plots if placed[1].name.startswith(kernel_plots.TOKENS)]
        self._page(
            f"certify/{kernel.slug}/index.html",
            "certificate.html",
            plots,
            bars=plots[: len(plots) - len(tokens)],
            tokens=tokens,
            kernel=kernel,
            certificate=kernel.data,
            plain_columns=plain_numbers.COLUMNS,
            plain_rows=plain_numbers.rows(kernel.data),
            own_failing=len(wrong),
            own_classes=list(dict.fromkeys(wrong)),
            gradients=gradient_rows,
            gradient_fields=gradients.fields(gradient_rows),
            files=sorted(files),
            script=files[script].decode("utf-8", "replace") if script in files else None,
        )
        for name, content in files.items():
            self._file(f"certify/{kernel.slug}/{name}", content)

    def _page(self, path: str, template: str, plots: Placed = (), **content: Any) -> Path:
        root = "../" * path.count("/")
        text = self._environment.get_template(template).render(root=root, plots=plots, **content)
        for place, plot in plots:
            self._file(place, plot.svg.encode())
        page = self._file(path, text.encode())
        self._done += 1
        if self._progress:
            self._progress(self._done, self._pages)
        return page

    def _file(self, path: str, content: bytes) -> Path:
        place = self._out / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError as problem:
            raise RequestError(f"the report cannot be written: {place}: {problem.strerror}") from problem
        return place


def _placed(owner: str, plots: list[Plot]) -> Placed:
    return tuple((f"plots/{owner}/{plot.name}.svg", plot) for plot in plots)
