"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters, files
from dpcore.report.script import Source
from pages.learning import answer as learning_view
from pages.learning import card
from pages.learning import figures as learning_charts
from pages.learning.question import POPULATION, QUESTION
from pages.shared.report_content import ReportContent, distribution


def learning_report(
    view: learning_view.LearningView, data: Dataset, parameters: LearningParameters, source: Source
) -> ReportContent:
    """The report of the page Learning under a cap."""
    kind, own_cap = data.provenance, parameters.own_cap
    pictures = [
        learning_charts.bound_picture(view, own_cap, kind),
        learning_charts.terms_picture(view, own_cap, kind),
        distribution(data),
    ]
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=QUESTION.asked(*(name for name in QUESTION.fields if name not in POPULATION)),
        cards=[("", card.card(view, data, parameters))],
        pictures=pictures,
        source=source,
        choice=lambda: files.learning_choice_json(data, parameters, view.choice, view.within),
    )
