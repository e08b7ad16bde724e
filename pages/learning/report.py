"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.learning import LearningParameters, files
from dpcore.report.content import data_lines
from dpcore.report.script import Source
from pages.learning import answer as learning_view
from pages.learning import card
from pages.learning import figures as learning_charts
from pages.learning.formula import FORMULA as LEARNING_FORMULA
from pages.learning.question import POPULATION, QUESTION
from pages.shared.figures import Picture
from pages.shared.report_content import ReportContent, distribution


def learning_report(
    view: learning_view.LearningView, data: Dataset, parameters: LearningParameters, source: Source
) -> ReportContent:
    """The report of the page Learning under a cap."""
    limits, columns = learning_view.axis_limits(view), learning_charts.bound_columns(view)
    pictures = [
        Picture(
            "learning-bound",
            "Bound on the excess risk against the cap",
            lambda: learning_charts.bound_figure(view, limits, parameters.own_cap),
            learning_charts.bound_alt(view),
            columns,
            data.provenance,
        ),
        Picture(
            "learning-terms",
            "All bounds on the bias",
            lambda: learning_charts.terms_figure(view, limits, parameters.own_cap),
            learning_charts.terms_alt(view),
            columns,
            data.provenance,
        ),
        distribution(data),
    ]
    return ReportContent(
        page="Learning under a cap",
        parameters=parameters,
        asked=QUESTION.asked(*(name for name in QUESTION.fields if name not in POPULATION)),
        cards=[("", card.card(view, data, parameters))],
        pictures=pictures,
        formula=LEARNING_FORMULA,
        source=source,
        program="dpcore.learning.script",
        summary=data_lines(data),
        choice=lambda: files.learning_choice_json(data, parameters, view.choice, view.within),
    )
