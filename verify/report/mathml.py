"""Formulas for a browser: LaTeX to MathML, with nothing but MathML coming out whatever goes in."""

import html
import re
import unicodedata
from functools import cache
from xml.etree.ElementTree import Element

from latex2mathml.converter import Converter
from markupsafe import Markup, escape

ELEMENTS = re.compile(
    "math|mrow|mi|mn|mo|ms|mtext|mspace|mfrac|msqrt|mroot|mstyle|mpadded|mphantom|msub|msup|msubsup|munder|mover"
    "|munderover|mmultiscripts|mtable|mtr|mtd|menclose|mfenced"
)
"""Elements that are written; anything else a formula asks for makes it appear as plain LaTeX."""
ATTRIBUTES = re.compile(
    "display|stretchy|fence|form|separator|accent|accentunder|displaystyle|scriptlevel|minsize|maxsize"
    "|columnalign|linethickness|movablelimits|lspace|rspace|width|height|depth"
)
ALPHABETS = {
    "double-struck": ("DOUBLE-STRUCK",),
    "script": ("SCRIPT",),
    "bold": ("BOLD",),
    "fraktur": ("FRAKTUR", "BLACK-LETTER"),
}
"""Letter styles browsers draw only as characters of their own, and what Unicode calls them."""


class _Unknown(Exception):
    """The formula needs something that is not plain MathML."""


def prose(text: str) -> Markup:
    """Text whose parts between dollar signs are LaTeX."""
    pieces = re.split(r"\$([^$]+)\$", text)
    return Markup("").join(
        formula(piece) if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )


def domain(text: str) -> Markup:
    """What a variable ranges over: prose with formulas, or one formula without dollar signs."""
    bare = re.sub(r"\\[A-Za-z]+(\{[^}]*\})?", "", text)
    return prose(text) if "$" in text or re.search("[A-Za-z]{3,}", bare) else formula(text)


@cache
def formula(latex: str, display: bool = False) -> Markup:
    """MathML of a formula; LaTeX that cannot be translated is shown as it stands."""
    readable = re.sub(r"\{([A-Za-z])(\d+)\}_", r"{\1_{\2}}_", latex)
    try:
        tree = Converter(display="block" if display else "inline").convert_to_element(readable)
        return Markup(_serialised(tree))
    except Exception:  # the converter raises a dozen unrelated types; readers must see the formula anyway
        return Markup('<code class="tex">{}</code>').format(latex)


def _serialised(element: Element) -> str:
    if not ELEMENTS.fullmatch(element.tag):
        raise _Unknown(element.tag)
    style = element.get("mathvariant", "")
    kept = {name: text for name, text in element.items() if ATTRIBUTES.fullmatch(name)}
    if style == "normal" and element.tag == "mi":
        kept["mathvariant"] = "normal"
    attributes = "".join(f' {name}="{html.escape(text)}"' for name, text in sorted(kept.items()))
    text = html.unescape(element.text or "")
    if re.search(r"\\[A-Za-z]", text) and element.tag != "mtext":
        raise _Unknown(text)
    inner = html.escape(_styled(text, style)) + "".join(_serialised(child) for child in element)
    return f"<{element.tag}{attributes}>{inner}</{element.tag}>"


def _styled(text: str, style: str) -> str:
    names = ALPHABETS.get(style)
    return "".join(_letter(character, names) for character in text) if names else text


def _letter(character: str, names: tuple[str, ...]) -> str:
    """A letter in another alphabet: most stand in one block of Unicode, a few elsewhere (ℝ, ℋ, ℜ)."""
    plain = unicodedata.name(character, "").replace("LATIN ", "").replace("LETTER ", "").replace("GREEK ", "")
    for name in names:
        for wanted in (f"MATHEMATICAL {name} {plain}", f"{name} {plain}"):
            try:
                return unicodedata.lookup(wanted)
            except KeyError:
                continue
    return character
