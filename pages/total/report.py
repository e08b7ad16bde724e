"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.report.content import data_lines
from dpcore.report.script import Source
from dpcore.total import files as export_total
from dpcore.total.parameters import TotalParameters, UserTotals
from pages.shared.figures import Picture
from pages.shared.report_content import ReportContent, distribution
from pages.total import answer as total_view
from pages.total import card as total_words
from pages.total import figures as total_charts
from pages.total import signed, signed_card
from pages.total.formula import FORMULA as TOTAL_FORMULA
from pages.total.question import QUESTION

TOTAL_ASKED = QUESTION.asked("mechanism", "delta", "summed", "measure", "own_bound", "lower", "upper")


def total_report(
    view: total_view.TotalView, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """What the page Sum and count contributes where no total is negative."""
    picture = Picture(
        "total-error",
        "Error against the bound",
        lambda: total_charts.error_figure(view, view.limits),
        total_charts.error_alt(view),
        total_charts.error_columns(view.errors),
        data.provenance,
    )
    return ReportContent(
        page="Sum and count",
        parameters=parameters,
        asked=TOTAL_ASKED,
        cards=[("", total_words.card(view, data))],
        pictures=[picture, distribution(data)],
        formula=TOTAL_FORMULA,
        source=source,
        program="dpcore.total.script",
        summary=data_lines(data),
        choice=lambda: export_total.total_choice_json(
            data, parameters, view.problem, view.choice, view.within, view.unit.column
        ),
    )


def signed_report(
    view: signed.SignedView, held: UserTotals, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """What the page Sum and count contributes where totals have both signs."""
    picture = Picture(
        "total-signed",
        "Error when totals are clipped to [−T, T]",
        lambda: total_charts.signed_figure(view, parameters.measure, total_charts.signed_limits(view)),
        total_charts.SIGNED_ALT,
        total_charts.error_columns(view.errors),
        data.provenance,
    )
    return ReportContent(
        page="Sum and count",
        parameters=parameters,
        asked=TOTAL_ASKED,
        cards=[
            ("", signed_card.card(view, data, total_view.Unit(held.column), parameters)),
        ],
        pictures=[picture, distribution(data)],
        formula=TOTAL_FORMULA,
        source=source,
        program="dpcore.total.script_signed",
        summary=data_lines(data),
        choice=lambda: export_total.signed_choice_json(data, parameters, held, view.clipped, view.entered),
    )
