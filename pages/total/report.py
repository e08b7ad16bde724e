"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.report.script import Source
from dpcore.total import files
from dpcore.total.parameters import TotalParameters, UserTotals
from pages.shared.report_content import ReportContent, distribution
from pages.total import card, figures, signed_card
from pages.total.answer import TotalView
from pages.total.question import QUESTION
from pages.total.signed import SignedView

TOTAL_ASKED = QUESTION.asked("mechanism", "delta", "summed", "measure", "own_bound", "lower", "upper")


def total_report(
    view: TotalView, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """What the page Sum and count contributes where no total is negative."""
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=TOTAL_ASKED,
        cards=[("", card.card(view, data, parameters.own_bound))],
        pictures=[
            figures.error_picture(view, data, parameters.own_bound),
            figures.measures_picture(view, data),
            distribution(data),
        ],
        source=source,
        choice=lambda: files.total_choice_json(
            data, parameters, view.problem, view.choice, view.within, view.unit.column
        ),
    )


def signed_report(
    view: SignedView, held: UserTotals, data: Dataset, parameters: TotalParameters, source: Source
) -> ReportContent:
    """What the page Sum and count contributes where totals have both signs."""
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=TOTAL_ASKED,
        cards=[("", signed_card.card(view, data, held, parameters))],
        pictures=[figures.signed_picture(view, data, parameters.measure), distribution(data)],
        source=source,
        program="script_signed",
        choice=lambda: files.signed_choice_json(data, parameters, held, view.clipped, view.entered),
    )
