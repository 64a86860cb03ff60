"""A claim's certificate as a LaTeX document that pdflatex compiles on its own."""

import json
import re
from collections.abc import Iterator
from typing import Any

from verify.report import counterexample, evidence
from verify.report.evidence import ChainView
from verify.report.words import STATUSES

_PREAMBLE = r"""\documentclass[11pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage{amsmath,amssymb}
\usepackage[margin=25mm]{geometry}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\setlength{\parskip}{6pt}
\sloppy
"""

_MATH = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "η": r"\eta",
    "θ": r"\theta", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi",
    "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau", "φ": r"\varphi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega",
    "Γ": r"\Gamma", "Δ": r"\Delta", "Λ": r"\Lambda", "Π": r"\Pi", "Σ": r"\Sigma", "Φ": r"\Phi",
    "Ω": r"\Omega", "Ψ": r"\Psi", "Θ": r"\Theta", "Ξ": r"\Xi", "ζ": r"\zeta", "ι": r"\iota",
    "∞": r"\infty", "∈": r"\in", "∉": r"\notin", "∀": r"\forall", "∃": r"\exists",
    "∂": r"\partial", "∇": r"\nabla", "∑": r"\sum", "∏": r"\prod", "√": r"\surd", "∝": r"\propto",
    "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "≡": r"\equiv", "≪": r"\ll", "≫": r"\gg",
    "→": r"\to", "←": r"\leftarrow", "↔": r"\leftrightarrow", "⇒": r"\Rightarrow", "⇔": r"\Leftrightarrow",
    "↦": r"\mapsto", "−": "-", "×": r"\times", "·": r"\cdot", "∘": r"\circ", "±": r"\pm", "⟨": r"\langle",
    "⟩": r"\rangle", "‖": r"\|", "⊤": r"\top", "⊥": r"\perp", "∥": r"\parallel", "∩": r"\cap", "∪": r"\cup",
    "⊂": r"\subset", "⊆": r"\subseteq", "∅": r"\emptyset", "ℝ": r"\mathbb{R}", "ℚ": r"\mathbb{Q}",
    "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ᵀ": r"{}^{\top}", "½": r"\tfrac12", "¼": r"\tfrac14",
    "⌊": r"\lfloor", "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil", "ℓ": r"\ell", "∎": r"\square",
    "′": "'", "⁺": "{}^{+}", "⁻": "{}^{-}", "ⁿ": "{}^{n}", "ᵗ": "{}^{t}", "ᵢ": "{}_{i}", "ⱼ": "{}_{j}",
    "ₖ": "{}_{k}", "ₘ": "{}_{m}", "ₙ": "{}_{n}", "ₜ": "{}_{t}", "ₛ": "{}_{s}", "ₐ": "{}_{a}", "₊": "{}_{+}",
    "₋": "{}_{-}",
    **{digit: f"{{}}^{{{place}}}" for place, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{digit: f"{{}}_{{{place}}}" for place, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}  # fmt: skip
_TEXT = {"–": "--", "—": "---", "…": r"\dots{}", "«": r"\guillemotleft{}", "»": r"\guillemotright{}"}
_SIGNS = {**{sign: f"\\ensuremath{{{command}}}" for sign, command in _MATH.items()}, **_TEXT}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "#$%&_"},
}


def document(data: dict[str, Any]) -> str:
    """The whole certificate: statement, hypotheses, every step with its rule, who checked it, mutants.

    Args:
        data: a claim's certificate.
    """
    return "\n".join([_PREAMBLE, r"\begin{document}", *_document(data), r"\end{document}", ""])


def prose(text: str) -> str:
    """Text with formulas between dollar signs, escaped outside them, other signs as LaTeX writes them."""
    # With a group in the pattern, every second piece is a formula.
    pieces = re.split(r"\$([^$]*)\$", text)
    return "".join(f"${formula(piece)}$" if at % 2 else _escaped(piece) for at, piece in enumerate(pieces))


def formula(latex: str) -> str:
    """A formula with letters such as τ spelled as commands; inside ``\\text`` too, where they are maths."""
    return "".join(_SIGNS.get(sign, sign) for sign in latex)


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(sign, _SIGNS.get(sign, sign)) for sign in text)


def _document(data: dict[str, Any]) -> Iterator[str]:
    yield rf"\section*{{{prose(data['title'])}}}"
    status = _escaped(STATUSES[data["status"]][1])
    yield rf"\texttt{{{_escaped(data['id'])}}}: \textbf{{{data['verdict']}}}. {status}"
    yield ""
    yield prose(data["statement"])
    yield ""
    yield rf"\textit{{Scope.}} {prose(data['scope'])}. \textit{{Source.}} {prose(data['source'])}."
    if data["assumptions"]:
        yield r"\begin{itemize}"
        for item in data["assumptions"]:
            kind = "Cited" if item["cited"] else "Assumed"
            yield rf"\item {kind}: {prose(item['text'])}"
        yield r"\end{itemize}"
    if "counterexample" in data:
        yield r"\begin{description}"
        for heading, text in counterexample.lines(data):
            yield rf"\item[{prose(heading)}] {prose(text)}"
        yield r"\end{description}"
    for number, part in enumerate(data["parts"], start=1):
        yield rf"\subsection*{{Part {number}: {part['word']}}}"
        yield prose(part["statement"])
        for item in part["evidence"]:
            yield from _evidence(item)
    yield r"\subsection*{Wrong variants the same checks refute}"
    yield r"\begin{itemize}"
    for mutant in data["mutants"]:
        yield rf"\item {prose(mutant['name'])}: {prose(mutant['description'])} ({mutant['verdict']})"
    yield r"\end{itemize}"
    if data["remark"]:
        yield rf"\textit{{Remark.}} {prose(data['remark'])}"


def _evidence(item: dict[str, Any]) -> Iterator[str]:
    body = evidence.body(item["kind"], item["data"])
    yield rf"\paragraph{{{prose(item['label'])}}} ({item['verdict']})"
    for heading, chain in body.chains:
        yield from _chain(heading, chain)
    if body.goal and not body.chains:
        yield rf"\[{formula(body.goal)}\]"
    shown = {**body.rest, **dict(body.text)}
    if shown and not body.chains:
        yield r"\begin{footnotesize}\begin{verbatim}"
        yield from _verbatim(shown)
        yield r"\end{verbatim}\end{footnotesize}"
    words = "; ".join(f"{check['by']} ({check['role']}): {check['verdict']}" for check in item["checks"])
    yield rf"{{\small Checked by {prose(words)}.}}"


def _chain(heading: str, chain: ChainView) -> Iterator[str]:
    if heading:
        yield rf"\textit{{{prose(heading)}}}"
    for note in chain.given:
        yield rf"{{\small {prose(note.text)}: ${formula(note.latex)}$}}\\"
    yield rf"\[{formula(chain.start)}\]"
    for number, step in enumerate(chain.steps, start=1):
        yield rf"{number}. {prose(step.label)} \textsf{{[{_escaped(step.rule)}]}}"
        yield rf"\[{formula(step.sign)} {formula(step.latex)}\]"


def _verbatim(value: dict[str, Any]) -> Iterator[str]:
    """Witnesses and solver texts as they stand, in ASCII, lines cut to the width of the page."""
    for name, item in value.items():
        text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=True)
        yield f"{name}:"
        for line in text.encode("ascii", "backslashreplace").decode().splitlines():
            yield from (line[start : start + 95] for start in range(0, max(len(line), 1), 95))
