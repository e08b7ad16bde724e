"""A report as one HTML file that needs nothing else: the plotting script inlined, formulae as MathML.

The page is the template ``report.html``, which escapes every text that it is given; ``report.css`` and ``report.js``
go into it as they are.
"""

from __future__ import annotations

import functools
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup

from dpcore.answer import Answer, Plot
from dpcore.common.privacy import Disclosure, classify
from dpcore.report import charts, plotly_figures, plotly_script
from dpcore.report.content import Report, list_facts, list_numbers, read_versions
from dpcore.report.markup import render_block, render_inline

# Nothing may be loaded, whatever the file holds.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_FOREIGN_TAG = re.compile(r"<(?!/?(?:br|b|i|sub|sup|extra)>)", re.IGNORECASE)


def write_report_html(report: Report, created_at: datetime) -> str:
    """Return the report as the text of one HTML file that loads nothing."""
    # This text replaces FOOT, the foot of every printed page.
    foot_text = "PRIVATE: do not publish" if report.holds_private else "Made with Sweet Spot"
    return _load_template().render(
        report=report,
        created=created_at.strftime("%d %B %Y, %H:%M %Z").lstrip("0").strip(),
        policy=Markup(CONTENT_SECURITY_POLICY),
        style=Markup(read_file("report.css").replace("FOOT", foot_text)),
        plotly=_load_plotly_script() if report.figures else "",
        formulae=Markup(render_block(report.formulae_markdown)),
        versions=read_versions(),
        drawings=[_embed_figure(plot, _draw_labelled(plot, report.figure_label)) for plot in report.figures],
        script=Markup(read_file("report.js")),
    )


@functools.cache
def _load_template() -> jinja2.Template:
    """Load the template of a report with its filters, once."""
    jinja_environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    # Markdown is escaped where it is read: no text becomes more than text there either.
    jinja_environment.filters["markdown"] = lambda text: Markup(render_inline(text))
    jinja_environment.filters["css"] = lambda disclosure: _CSS_CLASSES[classify(disclosure)]
    jinja_environment.filters |= {"helps": _group_helps, "numbers": list_numbers, "facts": list_facts}
    return jinja_environment.from_string(re.sub(r"\n +", "", read_file("report.html")))


def read_file(file_name: str) -> str:
    """Return the text of a file of this folder."""
    return (Path(__file__).parent / file_name).read_text(encoding="utf-8")


# Classes of labels. Their colours stay on paper: they repeat what their words say.
_CSS_CLASSES = {Disclosure.PUBLIC: "public", Disclosure.PRIVATE: "private", Disclosure.DP_RELEASE: "released"}


def _group_helps(answer: Answer) -> list[tuple[str, list[str]]]:
    """Return (explanation, labels of all numbers that it belongs to), each explanation once."""
    number_names_by_help: dict[str, list[str]] = {}
    for number in answer.numbers:
        if number.help:
            number_names_by_help.setdefault(number.help, []).append(number.label)
    return list(number_names_by_help.items())


@functools.cache
def _load_figure_template() -> dict[str, Any]:
    """Load the template of figures in a report as a dictionary, once: its script knows none by name."""
    template_options: dict[str, Any] = plotly_figures.load_white_template().to_plotly_json()
    return template_options


def build_notebook_content(figure: go.Figure) -> dict[str, Any]:
    """Build what a notebook shows of a figure, by media type: Plotly's JSON, and HTML that holds all that it needs.

    Plotly's own way adds a script of MathJax from the network, which our figures do not need.
    """
    figure_html = figure.to_html(full_html=False, include_plotlyjs=False, include_mathjax=False)
    return {
        "application/vnd.plotly.v1+json": json.loads(figure.to_json()),
        "text/html": f"<script>{_load_plotly_script()}</script>{figure_html}",
    }


def _load_plotly_script() -> Markup:
    """Load Plotly's script, changed so that it cannot end the element that holds it."""
    # The library's own text holds no closing tag today; a later one that does must not end the script.
    return Markup(plotly_script.find_script().read_text(encoding="utf-8").replace("</script", "<\\x2fscript"))


def _draw_labelled(plot: Plot, disclosure_label: str) -> go.Figure:
    """Draw a plot, with a label above it unless that is empty."""
    fig = plotly_figures.draw_plot(plot)
    return charts.add_label(fig, disclosure_label) if disclosure_label else fig


def _embed_figure(plot: Plot, fig: go.Figure) -> Markup:
    """Return a figure as JSON for a script element, labelled if its data are not public."""
    if plot.disclosure is not Disclosure.PUBLIC:
        charts.add_label(fig, plot.disclosure.label)
    fig.update_layout(width=None, autosize=True, paper_bgcolor="white", plot_bgcolor="white")
    figure_json = _escape_texts(json.loads(fig.to_json()))
    # Inside the figure Plotly would check it each time, which takes as long as all other steps.
    figure_json["layout"]["template"] = _load_figure_template()
    json_text = json.dumps({"id": f"figure-{plot.key}", "name": plot.key, **figure_json}, ensure_ascii=True)
    # In a script, an HTML parser knows nothing but the end of it and comments: no < and no & leaves neither.
    return Markup(json_text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _escape_texts(figure_part: Any) -> Any:
    """Escape markup in the texts of a figure, except for the tags that our figures use.

    A name from the data may hold ``<a href=...>``, which Plotly turns into a link, or two dollar signs, for which it
    looks for MathJax.
    """
    if isinstance(figure_part, str):
        figure_part = _FOREIGN_TAG.sub("&lt;", figure_part)
        return figure_part.replace("$", "&#36;") if figure_part.count("$") > 1 else figure_part
    if isinstance(figure_part, dict):
        return {
            member_name: _escape_texts(contained_value)
            for member_name, contained_value in figure_part.items()
        }
    if isinstance(figure_part, list):
        return [_escape_texts(contained_value) for contained_value in figure_part]
    return figure_part
