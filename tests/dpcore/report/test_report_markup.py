"""Markdown and LaTeX of the pages as HTML without a network: all of it converts, and text stays text."""

import html
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.report import markup

PAGES = Path(__file__).resolve().parents[3] / "pages"
# MathML Core, "Mathematical Elements": how many children each must have.
CHILDREN = {
    "msup": 2,
    "msub": 2,
    "mfrac": 2,
    "mover": 2,
    "munder": 2,
    "msubsup": 3,
    "munderover": 3,
    "mroot": 2,
}


def page_formulae() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*/formula*.md"))]


def find_formulae(text: str) -> list[tuple[str, bool]]:
    return [(match[1] or match[2], match[1] is not None) for match in markup._FORMULA_PATTERN.finditer(text)]


TEXTS = page_formulae()


def test_every_page_with_formulae_is_looked_at():
    assert len(TEXTS) >= 8
    assert sum(len(find_formulae(text)) for text in TEXTS) > 300


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_formula_becomes_sound_mathml(text):
    for latex, display in find_formulae(text):
        markup_text = markup.to_mathml(latex, display)
        assert "<code>" not in markup_text, latex
        tree = ElementTree.fromstring(markup_text)  # Well-formed: no bare & or <.
        mathml_text = "".join(tree.itertext())
        assert "\\" not in mathml_text, (latex, mathml_text)
        assert "&" not in mathml_text, (latex, mathml_text)
        for element in tree.iter():
            kind = element.tag.split("}")[-1]
            assert len(element) == CHILDREN.get(kind, len(element)), (latex, kind)
        # Letters and digits of the formula survive: count the digits, which no command contains.
        digits = re.sub(r"\\(?:tfrac|frac)", "", latex)
        assert sorted(re.findall(r"\d", re.sub(r"\[\d+pt\]", "", digits))) == sorted(
            re.findall(r"\d", mathml_text)
        )


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_dollar_sign_is_left_over(text):
    assert "$" not in re.sub(r"<[^>]*>", "", markup.render_block(text))


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


# Without what `literal` takes out on purpose: other white space, and what reorders or hides text.
NAMES = st.text(
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"), include_characters=" "
    )
    | st.sampled_from("<>&\"'`*_[]()$\\!#|~^{}-+.:/1 ")
)


@given(NAMES)
def test_a_name_comes_out_as_it_is_and_as_nothing_else(name):
    parsed_tags = Tags(markup.render_inline(markup.escape_markdown(name)))
    assert parsed_tags.tags == []
    expected = " ".join(name.split())
    assert "".join(parsed_tags.texts) == expected
    assert markup.to_plain_text(markup.escape_markdown(name)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "![x](http://evil.example/a.png)",
        "[x](javascript:alert(1))",
        "<http://evil.example>",
        "http://evil.example",
        "[x][1]\n\n[1]: http://evil.example",
        "<script>alert(1)</script>",
        "$<script>$",
        "$x$<b onclick=a>",
    ],
)
def test_markdown_makes_no_link_image_or_raw_html(text):
    for markup_text in (markup.render_inline(text), markup.render_block(text)):
        assert not set(Tags(markup_text).tags) & {"a", "img", "script", "b", "iframe"}, markup_text


def test_markdown_of_cards_keeps_its_marks():
    markup_text = markup.render_inline(r"**bold** *slanted* `code` h\* $x^2$ \$5 5 < 6")
    assert "<strong>bold</strong> <em>slanted</em> <code>code</code> h*" in markup_text
    assert "<msup>" in markup_text
    assert html.unescape(markup_text).endswith("$5 5 < 6")
    assert markup.to_plain_text(r"**bold** h\* $x^2$ \$5") == "bold h* $x^2$ $5"


def test_latex_that_cannot_be_read_stays_as_code():
    assert markup.to_mathml("x^a^b < c", is_display=False) == "<code>x^a^b &lt; c</code>"
