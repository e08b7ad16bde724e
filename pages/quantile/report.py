"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.quantile import files as export_quantile
from dpcore.report.script import Source
from pages.quantile import answer as quantile_view
from pages.quantile import card as quantile_words
from pages.quantile import figures as quantile_charts
from pages.quantile.question import QUESTION
from pages.shared.report_content import ReportContent, distribution


def quantile_report(
    view: quantile_view.QuantileView, data: Dataset, source: Source, demonstration: bool = False
) -> ReportContent:
    """What the page Quantile contributes to its report; ``demonstration`` as in `card.card`."""
    about = quantile_charts.About(data.provenance, demonstration)
    window, _ = quantile_view.window(view)
    pictures = [
        quantile_charts.error_picture(view, quantile_view.axis_limits(view), about),
        quantile_charts.density_picture(view, window, about),
        quantile_charts.near_picture(view, about),
    ]
    return ReportContent(
        question=QUESTION,
        parameters=view.parameters,
        cards=[("", quantile_words.card(view, data, demonstration))],
        pictures=[*pictures, distribution(data)],
        source=source,
        choice=lambda: export_quantile.choice_json(
            data, view.parameters, view.bound, (view.choices.smooth, view.choices.cap), view.outputs
        ),
    )
