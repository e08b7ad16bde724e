"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.mean import MeanParameters, files
from dpcore.mean.user_effects import Clamped
from dpcore.report.script import Source
from pages.mean import card, figures
from pages.mean.answer import MeanView
from pages.mean.question import QUESTION
from pages.shared.report_content import ReportContent, distribution


def mean_report(
    view: MeanView, data: Dataset, parameters: MeanParameters, clamped: Clamped | None, source: Source
) -> ReportContent:
    """What the page Mean contributes to its report."""
    pictures = [
        figures.error_picture(view, data, parameters.own_cap),
        figures.weight_picture(view, data),
        *([] if clamped is None else [figures.shift_picture(view, data, clamped)]),
        distribution(data),
    ]
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        cards=[("", card.card(view, data, parameters, clamped))],
        pictures=pictures,
        formula=QUESTION.formula("formula_private" if view.private_counts else "formula"),
        source=source,
        choice=lambda: files.mean_choice_json(data, parameters, view.problem, view.cap, view.smooth),
    )
