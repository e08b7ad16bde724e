"""A report as one HTML file that needs nothing else: the plotting script inlined, formulae as MathML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio
from plotly.offline import get_plotlyjs

from dpcore.common.privacy import Provenance, Sensitivity, kind_of
from dpcore.common.version import VERSION
from dpcore.report.content import Answer, FigureData, Line, Proof, Report
from dpcore.report.markup import block_html, inline_html
from pages.shared import charts
from pages.shared.report_style import PRINTED, SCRIPT, STYLE

WIDTH = 680
"""Of a figure, in CSS pixels: the text width of an A4 page, so that printing need not redraw."""
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
    sections = [
        _header(report),
        *(_answer(answer) for answer in report.answers if answer.headline),
        _lines_section("Released", report.releases) if report.releases else "",
        _figures(report.figures),
        _lines_section("The data", report.summary) if report.summary else "",
        _lines_section("What was asked", report.asked),
        *(_assumptions(answer) for answer in report.answers),
        *(_proofs(answer) for answer in report.answers if answer.proofs),
        f"<section class='formulae'><h2>How this is computed</h2>{block_html(report.formulae)}</section>",
        _versions(report),
    ]
    foot = "PRIVATE: do not publish" if report.holds_private else "Made with Sweet Spot"
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{html.escape(report.page)}: report by Sweet Spot</title>\n"
        f"<style>{STYLE}{PRINTED.replace('FOOT', foot)}</style>\n"
        + (_plotly() if report.figures else "")
        + "</head>\n<body>\n<main>\n"
        + "\n".join(part for part in sections if part)
        + "\n</main>\n"
        + "".join(_drawing(figure, drawings[figure.key]) for figure in report.figures)
        + (f"<script>{SCRIPT}</script>\n" if report.figures else "")
        + "</body>\n</html>\n"
    )


def exported(fig: go.Figure) -> go.Figure:
    """The figure in colours of its own on white.

    Streamlit replaces Plotly's default template by one whose colours only its front end knows.
    """
    fig.update_layout(
        template=pio.templates.merge_templates("plotly_white", charts.TEMPLATE),
        width=None,
        autosize=True,
        paper_bgcolor="white",
        plot_bgcolor="white",
    )
    return fig


def _plotly() -> str:
    # The library's own text holds no closing tag today; a later one that does must not end the script.
    text = get_plotlyjs().replace("</script", "<\\x2fscript")
    return f"<script>{text}</script>\n"


def _drawing(figure: FigureData, fig: go.Figure) -> str:
    if figure.sensitivity is not Sensitivity.PUBLIC:
        charts.labelled(fig, figure.sensitivity.label)
    spec = _tamed(json.loads(exported(fig).to_json()))
    text = json.dumps({"id": _id(figure), "name": figure.key, **spec}, ensure_ascii=True)
    # In a script, an HTML parser knows nothing but the end of it and comments: no < and no & leaves neither.
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f"<script type='application/json' class='figure-data'>{safe}</script>\n"


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


def _id(figure: FigureData) -> str:
    return f"figure-{figure.key}"


def _header(report: Report) -> str:
    made = report.made.strftime("%d %B %Y, %H:%M %Z").lstrip("0").strip()
    if report.holds_private:
        banner = (
            "<p class='banner private'><strong>Do not publish.</strong> This report holds numbers computed from "
            "private data. Each says so beside it.</p>"
        )
    elif report.public_only and report.left_out:
        items = "".join(f"<li>{html.escape(item)}</li>" for item in report.left_out)
        banner = (
            "<div class='banner'><strong>Public and DP-release numbers only.</strong> The data are private. Left out, "
            f"since computed from them:<ul>{items}</ul></div>"
        )
    elif kind_of(report.sensitivity) is Sensitivity.DP_RELEASE:
        banner = (
            f"<p class='banner'><strong>{html.escape(_capital(report.sensitivity.label))}.</strong> What this report "
            "says of the data was computed from that release of private data, and its guarantee covers all of it.</p>"
        )
    else:
        banner = "<p class='banner'>No number in this report was computed from private data.</p>"
    # The first line of a summary names the data.
    on = f", on {inline_html(report.summary[0].value)}" if report.summary else ""
    return (
        f"<header><p class='made'>Sweet Spot report, {html.escape(made)}{on}</p>"
        f"<h1>{html.escape(report.page)}</h1><p class='question'>{html.escape(report.question)}</p>{banner}</header>"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _answer(answer: Answer) -> str:
    title = f"The choice: {html.escape(answer.title)}" if answer.title else "The choice"
    detail = f"<p>{inline_html(answer.detail)}</p>" if answer.detail else ""
    tiles = "".join(
        f"<div class='tile'><div class='name'>{inline_html(line.name)}</div>"
        f"<div class='value'>{inline_html(line.value)}</div>"
        f"<div class='note'>{inline_html(line.note)}</div>{_label(line.sensitivity, line.says)}</div>"
        for line in answer.numbers
    )
    helps: dict[str, list[str]] = {}
    for line in answer.numbers:
        if line.help:
            helps.setdefault(line.help, []).append(line.name)
    helped = "".join(
        f"<p class='help'><strong>{inline_html('; '.join(names))}.</strong> {inline_html(text)}</p>"
        for text, names in helps.items()
    )
    return (
        f"<section><h2>{title}</h2><p class='headline'>{inline_html(answer.headline)}</p>"
        f"{_label(answer.sensitivity)}{detail}<div class='tiles'>{tiles}</div>{helped}"
        f"{_table(answer.facts)}</section>"
    )


def _label(provenance: Provenance, text: str = "") -> str:
    css = {Sensitivity.PUBLIC: "public", Sensitivity.PRIVATE: "private", Sensitivity.DP_RELEASE: "released"}
    return f"<span class='label {css[kind_of(provenance)]}'>{html.escape(text or provenance.label)}</span>"


def _table(lines: Sequence[Line]) -> str:
    if not lines:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{inline_html(line.name)}</th><td>{inline_html(line.value)}"
        + (f"<div class='note'>{inline_html(line.note)}</div>" if line.note else "")
        + f"</td><td class='says'>{_label(line.sensitivity, line.says)}</td></tr>"
        for line in lines
    )
    return f"<table>{rows}</table>"


def _lines_section(title: str, lines: Sequence[Line]) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{_table(lines)}</section>"


def _figures(figures: Sequence[FigureData]) -> str:
    if not figures:
        return ""
    drawn = "".join(
        f"<figure><figcaption><strong>{html.escape(f.title)}</strong>{_label(f.sensitivity)}</figcaption>"
        f"<div class='plot' id='{html.escape(_id(f))}' role='img' aria-label='{html.escape(f.alt)}'></div>"
        f"<p class='alt'>{html.escape(f.alt)}</p></figure>"
        for f in figures
    )
    without = "<noscript><p>The figures need scripts; all in this file, nothing is loaded.</p></noscript>"
    return f"<section class='figures'><h2>Figures</h2>{without}{drawn}</section>"


def _assumptions(answer: Answer) -> str:
    of = f": {html.escape(answer.title)}" if answer.title else ""
    items = "".join(f"<li>{inline_html(sentence)}.</li>" for sentence in answer.assumptions)
    return f"<section><h2>What is assumed{of}</h2><ul>{items}</ul></section>"


def _proofs(answer: Answer) -> str:
    of = f": {html.escape(answer.title)}" if answer.title else ""
    rows = "".join(_proof(proof) for proof in answer.proofs)
    return (
        f"<section><h2>How sure{of}</h2><p>Each choice stands beside a number that no choice of its kind can go below; "
        f"both are recomputed from the data.</p><table>{rows}</table></section>"
    )


def _proof(proof: Proof) -> str:
    c = proof.certificate
    return (
        f"<tr><th scope='row'>{html.escape(proof.name)}</th><td>{inline_html(proof.ended)} "
        f"{html.escape(c.sentence)}<div class='note'>Found {c.value:.10g}, lower bound {c.lower_bound:.10g}, relative "
        f"gap {c.relative_gap:.2g}</div></td><td class='says'>{_label(proof.sensitivity)}</td></tr>"
    )


def _versions(report: Report) -> str:
    items = ", ".join(f"{html.escape(name)} {html.escape(text)}" for name, text in report.versions.items())
    return (
        f"<section class='versions'><h2>Versions</h2><p>{items}.</p><p>Made with Sweet Spot {VERSION} on the computer "
        "of the person who asked. This file loads nothing from a network.</p></section>"
    )
