"""What the page contributes to its report."""

from __future__ import annotations

from dpcore.dataset import Dataset
from dpcore.report.script import Source
from dpcore.toy.parameters import ToyParameters
from pages.shared.report.report_content import ReportContent
from pages.toy.answer import ToyAnswer
from pages.toy.card import card
from pages.toy.figures import pictures
from pages.toy.question import QUESTION


def report(view: ToyAnswer, data: Dataset, parameters: ToyParameters, source: Source) -> ReportContent:
    """Of this page."""
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        cards=[("", card(view, data, parameters))],
        pictures=pictures(view, data.provenance),
        formula="Users with more rows, counted.",
        source=source,
    )
