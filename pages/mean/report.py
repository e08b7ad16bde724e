"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, files
from dpcore.mean.user_effects import Clamped
from dpcore.report.content import data_lines
from dpcore.report.script import Source
from pages.mean import answer as mean_view
from pages.mean import card as mean_words
from pages.mean import figures as mean_charts
from pages.mean.formula import FORMULA as MEAN_FORMULA
from pages.mean.formula import FORMULA_PRIVATE
from pages.mean.question import QUESTION
from pages.shared import axes
from pages.shared.figures import Picture
from pages.shared.report_content import ReportContent, distribution


def mean_report(
    view: mean_view.MeanView,
    data: Dataset,
    parameters: MeanParameters,
    clamped: Clamped | None,
    source: Source,
) -> ReportContent:
    """What the page Mean contributes to its report."""
    bounds, errors = mean_view.axis_limits(data.histogram, parameters.value_bound)
    sizes, kind = axes.curve_bounds(data.histogram), data.provenance
    pictures = [
        Picture(
            "mean-error",
            "Standard error against the bound",
            lambda: mean_charts.error_figure(view, (bounds, errors), parameters.own_cap),
            mean_charts.error_alt(view),
            mean_view.labelled(mean_charts.error_columns(view), view),
            kind,
        ),
        Picture(
            "mean-weights",
            "Weight of one row",
            lambda: mean_charts.weight_figure(view, sizes, bounds, mean_view.weight_limits(data.histogram)),
            mean_charts.WEIGHT_ALT,
            mean_view.labelled(mean_charts.weight_columns(view, sizes), view),
            kind,
        ),
    ]
    if clamped is not None:
        pictures.append(
            Picture(
                "mean-shift",
                "What independence hides",
                lambda: mean_charts.shift_figure(view, clamped, bounds),
                mean_charts.SHIFT_ALT,
                mean_view.labelled(mean_charts.shift_columns(view, clamped), view),
                kind,
            )
        )
    return ReportContent(
        page="Mean",
        parameters=parameters,
        asked=QUESTION.asked(),
        cards=[("", mean_words.card(view, data, parameters, clamped))],
        pictures=[*pictures, distribution(data)],
        formula=FORMULA_PRIVATE if view.private_counts else MEAN_FORMULA,
        source=source,
        program="dpcore.mean.script",
        summary=data_lines(data),
        choice=lambda: files.mean_choice_json(data, parameters, view.problem, view.cap, view.smooth),
    )
