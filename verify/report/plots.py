"""SVG figures: one style, equal bytes for equal data, colours that follow the light or dark page."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

COLOURS = {
    "#010203": ("ink", "#1f2430", "#e6e6e6"),
    "#010204": ("faint", "#c9ccd3", "#4a4f5a"),
    "#010205": ("first", "#0b61a4", "#6db7f2"),
    "#010206": ("second", "#b4500a", "#f0a060"),
    "#010207": ("ground", "#ffffff", "#15181e"),
}
"""Stand-in colour to (name, on a light page, on a dark page); the stand-ins are swapped for CSS variables."""
INK, FAINT, FIRST, SECOND, GROUND = COLOURS

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attnproof",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
}

ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0)}
"""Where a legend hides nothing."""

WIDE = 7.0
"""Figures wider than this, in inches, do not stand beside others."""

Draw = Callable[[Any], None]
"""Draws on a matplotlib ``Axes``."""


@dataclass(frozen=True)
class Plot:
    """A figure: ``name`` for its file, ``caption`` below it, ``alt`` in its place, and the SVG text.

    A ``wide`` one takes a row of the page to itself.
    """

    name: str
    caption: str
    alt: str
    svg: str
    wide: bool


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def plain_log_labels(axis: Any, form: str = ".0e") -> None:
    """Labels such as 1e-07 on a log axis: typeset ones take most of the time of a report."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:{form}}"))
    axis.set_minor_locator(NullLocator())


def draw(name: str, caption: str, alt: str, paint: Draw, size: tuple[float, float] = (4.8, 3.0)) -> Plot:
    """A figure with one pair of axes.

    Args:
        name: file name without ending.
        caption: what is shown, for those who see it.
        alt: what there is to see, for those who do not.
        paint: draws on the axes.
        size: width and height in inches.
    """
    with _style():
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        canvas = FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.print_svg(out, metadata=nothing)
    return Plot(name, caption, alt, _themed(out.getvalue()), size[0] > WIDE)


def _themed(svg: str) -> str:
    """The figure with transparent ground and colours that follow the page."""
    for stand_in, (name, _, _) in COLOURS.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    light, dark = ("".join(f"--{row[0]}:{row[column]};" for row in COLOURS.values()) for column in (1, 2))
    style = f"<style>svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}</style>"
    svg = re.sub(r"(?s)^.*?(?=<svg)", "", svg, count=1)
    return re.sub(r"(<svg[^>]*>)", lambda found: found[1] + style, svg, count=1)
