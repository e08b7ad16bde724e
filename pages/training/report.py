"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.common.ledger import Ledger
from dpcore.report.content import Line
from dpcore.report.script import Source
from dpcore.training import files
from dpcore.training.data_cell import data_cell
from dpcore.training.files import Draw
from dpcore.training.parameters import DataSource
from dpcore.training.scores import Measure, Over
from pages.shared.card.expenditure import lost_sentence, released_lines, spent_lines
from pages.shared.report.report_content import ReportContent, distribution
from pages.training import card, figures
from pages.training.answer import TrainingView
from pages.training.question import GENERATOR_FIELDS, QUESTION


def choice_json(view: TrainingView) -> str:
    """The choice as JSON."""
    return files.choice_json(view.loaded.dataset, view.parameters, view.table, view.known, view.calibrated)


def training_report(view: TrainingView, made: Sequence[Draw], ledger: Ledger) -> ReportContent:
    """The report of the page Training, with the latest of the releases ``made``, if any."""
    data = view.loaded.dataset
    names = [name for name in QUESTION.fields if name not in GENERATOR_FIELDS]
    if view.parameters.source is DataSource.GENERATED:
        names += GENERATOR_FIELDS
    cell = data_cell(view.parameters, view.loaded.design, view.loaded.ranges)
    return ReportContent(
        question=QUESTION,
        parameters=view.parameters,
        asked=QUESTION.asked(*names),
        cards=[("", card.card(view))],
        pictures=[
            figures.main_picture(view, Measure.LOSS, Over.ROWS),
            figures.main_picture_of_accuracy(view),
            figures.sides_picture(view),
            distribution(data),
        ],
        source=Source(data, rows=True, cell=cell),
        releases=_released(made, ledger),
        choice=lambda: choice_json(view),
    )


def _released(made: Sequence[Draw], ledger: Ledger) -> tuple[Line, ...]:
    """The latest release, and all that was spent: releases that ended in an error, too."""
    spent = spent_lines(ledger, lost_sentence(ledger, len(made), "these rows"))
    if not made:
        return spent
    draw = made[-1]
    note = f"Release {len(made)} of these rows; {card.bounded(draw.model.cell)}."
    return released_lines(draw.names, draw.model.theta, note, draw.model.facts.label, spent)
