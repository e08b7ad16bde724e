"""A report as one HTML file that needs nothing else: the plotting script inlined, formulae as MathML.

The page is the template ``report.html``, which escapes every text that it is given; ``report.css`` and ``report.js``
go into it as they are.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup

from dpcore.common.privacy import Disclosure, kind_of
from dpcore.common.version import VERSION
from dpcore.report import charts, plotly_figures, plotly_script
from dpcore.report.content import FigureData, Report, Said
from dpcore.report.markup import block_html, inline_html

WIDTH = 680
"""Width of a figure in CSS pixels: the text width of A4, so that printing need not redraw; so in ``report.js``."""
# Nothing may be loaded, whatever the file holds.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_FOREIGN_TAG = re.compile(r"<(?!/?(?:br|b|i|sub|sup|extra)>)", re.IGNORECASE)


def report_html(report: Report, drawings: Mapping[str, go.Figure]) -> str:
    """The file.

    Args:
        report: What it holds.
        drawings: Key of a figure of the report to its drawing.
    """
    # At the foot of every printed page, in place of FOOT.
    foot = "PRIVATE: do not publish" if report.holds_private else "Made with Sweet Spot"
    return _template().render(
        report=report,
        made=report.made.strftime("%d %B %Y, %H:%M %Z").lstrip("0").strip(),
        policy=Markup(POLICY),
        style=Markup(_text("report.css").replace("FOOT", foot)),
        plotly=_plotly() if report.figures else "",
        formulae=Markup(block_html(report.formulae)),
        version=VERSION,
        drawings=[_drawing(figure, drawings[figure.key]) for figure in report.figures],
        script=Markup(_text("report.js")),
    )


@functools.cache
def _template() -> jinja2.Template:
    made = jinja2.Environment(
        autoescape=True, trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    # Markdown is escaped where it is read: no text becomes more than text there either.
    made.filters["markdown"] = lambda text: Markup(inline_html(text))
    made.filters["css"] = lambda kind: _CSS[kind_of(kind)]
    made.filters["helps"] = _helps
    return made.from_string(re.sub(r"\n +", "", _text("report.html")))


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


# Classes of labels. Their colours stay on paper: they repeat what their words say.
_CSS = {Disclosure.PUBLIC: "public", Disclosure.PRIVATE: "private", Disclosure.DP_RELEASE: "released"}


def _helps(answer: Said) -> list[tuple[str, list[str]]]:
    """Each explanation once, with the names of all numbers that it goes with."""
    helps: dict[str, list[str]] = {}
    for line in answer.numbers:
        if line.help:
            helps.setdefault(line.help, []).append(line.name)
    return list(helps.items())


@functools.cache
def _on_white() -> dict[str, Any]:
    """The template of figures in a report, as Plotly reads it. Its script knows no template by name."""
    template: dict[str, Any] = plotly_figures.white().to_plotly_json()
    return template


def _plotly() -> Markup:
    # The library's own text holds no closing tag today; a later one that does must not end the script.
    return Markup(plotly_script.path().read_text(encoding="utf-8").replace("</script", "<\\x2fscript"))


def _drawing(figure: FigureData, fig: go.Figure) -> Markup:
    if figure.disclosure is not Disclosure.PUBLIC:
        charts.labelled(fig, figure.disclosure.label)
    fig.update_layout(width=None, autosize=True, paper_bgcolor="white", plot_bgcolor="white")
    spec = _tamed(json.loads(fig.to_json()))
    # Set in the figure, it would be checked in each, which takes as long as all the rest.
    spec["layout"]["template"] = _on_white()
    text = json.dumps({"id": f"figure-{figure.key}", "name": figure.key, **spec}, ensure_ascii=True)
    # In a script, an HTML parser knows nothing but the end of it and comments: no < and no & leaves neither.
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _tamed(value: Any) -> Any:
    """The figure with nothing in its texts that Plotly takes for markup but the tags that our figures use.

    A name from the data may hold ``<a href=...>``, which Plotly makes a link of, or two dollar signs, for which it
    looks for MathJax.
    """
    if isinstance(value, str):
        value = _FOREIGN_TAG.sub("&lt;", value)
        return value.replace("$", "&#36;") if value.count("$") > 1 else value
    if isinstance(value, dict):
        return {name: _tamed(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_tamed(one) for one in value]
    return value
