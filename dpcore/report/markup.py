"""The Markdown of cards and formulae as HTML that needs no network, or as plain text.

Formulae become MathML, which browsers draw themselves. Everything else goes through markdown-it with raw HTML,
images and links switched off, so that no text, whatever it holds, becomes more than text.
"""

from __future__ import annotations

import functools
import html
import re
from typing import Any

_FORMULA_PATTERN = re.compile(r"(?<!\\)\$\$(.+?)\$\$|(?<!\\)\$(?!\s)(.+?)(?<![\\\s])\$", re.DOTALL)
_UPRIGHT_PATTERN = re.compile(r"\\mathrm\{(\w)\}")
_THIN_SPACE_MATHML = '<mspace width="0.167em" />'
# Not if the function is itself the base of a power or part of a fraction, whose children are counted.
_FUNCTION_PATTERN = re.compile(
    r"(?<!<msup>)(?<!<msub>)(?<!<mfrac>)(?<!<msubsup>)(?<!<munder>)"
    r'(<mi>(?:log|ln|exp)</mi>)(<mo stretchy="false">&#x00028;</mo>|</mrow>)?'
)
# Markers that stand for formulae while Markdown is read; taken out of the text first.
_MARKER_START, _MARKER_END = "\ue000", "\ue001"
_MARKER_PATTERN = re.compile(f"{_MARKER_START}(\\d+){_MARKER_END}")
# Invisible characters that keep Streamlit from making links, and those that turn the reading order around.
_INVISIBLE_PATTERN = re.compile("[\u2060\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ue000\ue001]")
_PUNCTUATION_PATTERN = re.compile(r"([!-/:-@\[-`{-~])")


def escape_markdown(text: str) -> str:
    """Escape punctuation so that Markdown shows the text literally, and put it on one line."""
    return _PUNCTUATION_PATTERN.sub(r"\\\1", " ".join(text.split()))


def render_block(markdown: str) -> str:
    """Render Markdown of several paragraphs, lists and formulae as HTML."""
    return _render(markdown, is_inline=False)


def render_inline(markdown: str) -> str:
    """Render one line of Markdown and formulae as HTML without a paragraph around it."""
    return _render(markdown, is_inline=True)


def to_plain_text(markdown: str) -> str:
    """Convert Markdown to text: without marks and backslashes, formulae as LaTeX between dollar signs."""
    text_with_markers, formulae = _replace_formulae(markdown)
    inline_tokens = [token for token in _load_markdown().parse(text_with_markers) if token.type == "inline"]
    plain_text = "\n".join("".join(map(_read_token_text, token.children or ())) for token in inline_tokens)
    return _MARKER_PATTERN.sub(lambda match: formulae[int(match[1])][0], plain_text)


def to_mathml(latex: str, is_display: bool) -> str:
    """Convert LaTeX to MathML, in a span if displayed; return a formula that cannot be converted as code."""
    from latex2mathml.converter import convert

    # The library knows `split`, which looks the same, and draws a single letter in \\mathrm slanted.
    latex = _UPRIGHT_PATTERN.sub(r"\\text{\1}", latex.replace("{aligned}", "{split}"))
    # The library has an exception of its own per mistake; a report without one formula is better than none.
    try:
        mathml = str(convert(latex, display="block" if is_display else "inline"))
    except Exception:
        return f"<code>{html.escape(latex)}</code>"
    # A thin space around named functions, as TeX sets it; and bars of a norm as high as the line.
    mathml = _FUNCTION_PATTERN.sub(
        lambda m: f"{_THIN_SPACE_MATHML}{m[1]}{m[2] or _THIN_SPACE_MATHML}", mathml
    )
    mathml = mathml.replace("<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>')
    return f"<span class='display'>{mathml}</span>" if is_display else mathml


def _replace_formulae(markdown: str) -> tuple[str, list[tuple[str, str]]]:
    """Replace the formulae of a text by markers; return (text, [(LaTeX with dollars, MathML), …])."""
    formulae: list[tuple[str, str]] = []

    def add_formula(match: re.Match[str]) -> str:
        """Add a formula to the list and return its marker."""
        formulae.append((match[0], to_mathml(match[1] or match[2], match[1] is not None)))
        return f"{_MARKER_START}{len(formulae) - 1}{_MARKER_END}"

    return _FORMULA_PATTERN.sub(add_formula, _INVISIBLE_PATTERN.sub("", markdown)), formulae


def _render(markdown: str, is_inline: bool) -> str:
    """Render Markdown and formulae as HTML, with or without a paragraph around it."""
    text_with_markers, formulae = _replace_formulae(markdown)
    markdown_reader = _load_markdown()
    html_text = (
        markdown_reader.renderInline(text_with_markers)
        if is_inline
        else markdown_reader.render(text_with_markers)
    )
    return _MARKER_PATTERN.sub(lambda match: formulae[int(match[1])][1], html_text)


def _read_token_text(token: Any) -> str:
    """Return the text of a token of Markdown; a newline for a break."""
    return "\n" if token.type in ("softbreak", "hardbreak") else str(token.content)


@functools.lru_cache(maxsize=1)
def _load_markdown() -> Any:
    """Build the Markdown reader, without raw HTML, images and links, once."""
    from markdown_it import MarkdownIt

    disabled_rules = ["html_block", "html_inline", "image", "link", "autolink", "reference"]
    return MarkdownIt("commonmark", {"html": False}).disable(disabled_rules).enable("table")
