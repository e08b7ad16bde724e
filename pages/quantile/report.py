"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.quantile import files as export_quantile
from dpcore.report.content import data_lines
from dpcore.report.script import Source
from pages.quantile import answer as quantile_view
from pages.quantile import card as quantile_words
from pages.quantile import figures as quantile_charts
from pages.quantile.formula import FORMULA as QUANTILE_FORMULA
from pages.quantile.question import QUESTION
from pages.shared.figures import Picture
from pages.shared.report_content import ReportContent, distribution


def quantile_report(view: quantile_view.QuantileView, data: Dataset, source: Source) -> ReportContent:
    """What the page Quantile contributes to its report."""
    limits, (first, _), kind = quantile_view.axis_limits(view), quantile_view.window(view), data.provenance
    pictures = [
        Picture(
            "quantile-error",
            "Rank error against the bound",
            lambda: quantile_charts.error_figure(view, limits),
            quantile_charts.error_alt(view),
            quantile_charts.error_columns(view),
            kind,
        ),
        Picture(
            "quantile-density",
            "Where the answer falls",
            lambda: quantile_charts.density_figure(view, first),
            quantile_words.density_alt(view),
            quantile_charts.density_columns(view, first),
            kind,
        ),
        Picture(
            "quantile-near",
            "How near it falls",
            lambda: quantile_charts.near_figure(view),
            quantile_words.near_alt(view),
            quantile_charts.near_columns(view),
            kind,
        ),
    ]
    return ReportContent(
        page="Quantile",
        parameters=view.parameters,
        asked=QUESTION.asked(),
        cards=[("", quantile_words.card(view, data))],
        pictures=[*pictures, distribution(data)],
        formula=QUANTILE_FORMULA,
        source=source,
        program="dpcore.quantile.script",
        summary=data_lines(data),
        choice=lambda: export_quantile.choice_json(
            data, view.parameters, view.bound, (view.choices.smooth, view.choices.cap), view.outputs
        ),
    )
