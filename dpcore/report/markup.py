"""The Markdown of cards and formulae as HTML that needs no network, or as plain text.

Formulae become MathML, which browsers draw themselves. Everything else goes through markdown-it with raw HTML,
images and links switched off, so that no text, whatever it holds, becomes more than text.
"""

from __future__ import annotations

import functools
import html
import re
from typing import Any

_MATH = re.compile(r"(?<!\\)\$\$(.+?)\$\$|(?<!\\)\$(?!\s)(.+?)(?<![\\\s])\$", re.DOTALL)
_UPRIGHT = re.compile(r"\\mathrm\{(\w)\}")
_THIN = '<mspace width="0.167em" />'
# Not where the function is itself the base of a power or part of a fraction, whose children are counted.
_FUNCTION = re.compile(
    r"(?<!<msup>)(?<!<msub>)(?<!<mfrac>)(?<!<msubsup>)(?<!<munder>)"
    r'(<mi>(?:log|ln|exp)</mi>)(<mo stretchy="false">&#x00028;</mo>|</mrow>)?'
)
# Markers that stand for formulae while Markdown is read; taken out of the text first.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARKED = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
# Invisible characters that keep Streamlit from making links, and those that turn the reading order around.
_INVISIBLE = re.compile("[\u2060\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ue000\ue001]")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def literal(text: str) -> str:
    """``text`` as literal characters in Markdown, on one line."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(text.split()))


def block_html(source: str) -> str:
    """Paragraphs, lists and formulae as HTML."""
    return _render(source, inline=False)


def inline_html(source: str) -> str:
    """One line of Markdown as HTML without a paragraph around it."""
    return _render(source, inline=True)


def plain_text(source: str) -> str:
    """Markdown as text: marks and backslashes gone, formulae left in LaTeX between dollar signs."""
    marked, formulae = _mark(source)
    pieces: list[str] = []
    for token in _reader().parse(marked):
        if token.type == "inline":
            pieces.append("".join(_text(child) for child in token.children or ()))
    text = "\n".join(pieces)
    return _MARKED.sub(lambda found: formulae[int(found[1])][0], text)


def mathml(latex: str, display: bool) -> str:
    """LaTeX as MathML; what cannot be converted stays as it is, as code."""
    from latex2mathml.converter import convert

    # The library knows `split`, which looks the same, and draws a single letter in \\mathrm slanted.
    latex = _UPRIGHT.sub(r"\\text{\1}", latex.replace("{aligned}", "{split}"))
    # The library has an exception of its own per mistake; a report without one formula is better than none.
    try:
        made = str(convert(latex, display="block" if display else "inline"))
    except Exception:
        return f"<code>{html.escape(latex)}</code>"
    # A thin space around named functions, as TeX sets it; and bars of a norm as high as the line.
    made = _FUNCTION.sub(lambda found: f"{_THIN}{found[1]}{'' if found[2] else _THIN}{found[2] or ''}", made)
    made = made.replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')
    return f"<span class='display'>{made}</span>" if display else made


def formulae(source: str) -> list[tuple[str, bool]]:
    """Every formula of a text, with whether it stands on a line of its own."""
    return [(found[1] or found[2], found[1] is not None) for found in _MATH.finditer(source)]


def _mark(source: str) -> tuple[str, list[tuple[str, str]]]:
    """The text with markers for its formulae, and these as (LaTeX with dollars, MathML)."""
    pieces: list[tuple[str, str]] = []

    def note(match: re.Match[str]) -> str:
        pieces.append((match[0], mathml(match[1] or match[2], match[1] is not None)))
        return f"{_OPEN}{len(pieces) - 1}{_CLOSE}"

    return _MATH.sub(note, _INVISIBLE.sub("", source)), pieces


def _render(source: str, inline: bool) -> str:
    marked, found = _mark(source)
    reader = _reader()
    text = reader.renderInline(marked) if inline else reader.render(marked)
    return _MARKED.sub(lambda match: found[int(match[1])][1], text)


def _text(token: Any) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else str(token.content)


@functools.lru_cache(maxsize=1)
def _reader() -> Any:
    from markdown_it import MarkdownIt

    off = ["html_block", "html_inline", "image", "link", "autolink", "reference"]
    return MarkdownIt("commonmark", {"html": False}).disable(off).enable("table")
