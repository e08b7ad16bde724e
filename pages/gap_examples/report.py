"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dpcore import gap_examples
from dpcore.dataset import Dataset
from dpcore.gap_examples import files
from dpcore.mean.answer.found import axis_limits
from dpcore.report.script import Source
from pages.gap_examples import answer as gap_view
from pages.gap_examples import card
from pages.gap_examples import figures as gap_charts
from pages.gap_examples.question import QUESTION
from pages.shared.report_content import ReportContent, distribution


def gap_report(
    view: gap_view.GapView, data: Dataset, parameters: gap_examples.GapParameters, source: Source
) -> ReportContent:
    """Of the step of *How much can weights gain?* on the person's own data."""
    bounds, _ = axis_limits(data.histogram, 1.0)
    picture = gap_charts.data_picture(view, (bounds, gap_charts.RATIO_RANGE), data.provenance)
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=QUESTION.asked("variance_source", "value_variance"),
        cards=[("", card.card(view, data, parameters.mean_parameters()))],
        pictures=[picture, distribution(data)],
        source=source,
        choice=lambda: files.instance_json(view.comparison, data.provenance),
    )
