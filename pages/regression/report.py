"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.common import wording
from dpcore.common.ledger import Ledger
from dpcore.regression import files
from dpcore.regression.data_cell import data_cell
from dpcore.regression.draw import Draw
from dpcore.regression.parameters import DataSource
from dpcore.report.content import Line
from dpcore.report.script import Source
from pages.regression import card, figures, weight_figures
from pages.regression.answer import ErrorOf, RegressionView
from pages.regression.question import GENERATOR_FIELDS, QUESTION
from pages.shared.card.expenditure import lost_sentence, released_lines, spent_lines
from pages.shared.report.report_content import ReportContent, distribution


def regression_report(view: RegressionView, made: Sequence[Draw], ledger: Ledger) -> ReportContent:
    """The report of the page Regression, with the latest of the draws ``made``, if any, and all that was spent."""
    data, of = view.loaded.dataset, ErrorOf.COEFFICIENTS
    pictures = [
        figures.cap_picture(view, of, figures.cap_limits(view, of)),
        weight_figures.weights_picture(view),
        distribution(data),
    ]
    asked = ["lower", "upper", "source", "variance_source", "residual_variance"]
    if view.parameters.source is DataSource.GENERATED:
        asked += GENERATOR_FIELDS
    return ReportContent(
        question=QUESTION,
        parameters=view.parameters,
        asked=QUESTION.asked(*asked),
        cards=[("", card.card(view))],
        pictures=pictures,
        source=Source(data, rows=True, cell=data_cell(view.parameters, view.loaded.design)),
        releases=_released(made, ledger),
        choice=lambda: files.choice_json(data, view.parameters, view.problem, view.ours, view.caps),
    )


def _released(made: Sequence[Draw], ledger: Ledger) -> tuple[Line, ...]:
    """The latest draw, and all that was spent: releases that ended in an error, too."""
    spent = spent_lines(ledger, lost_sentence(ledger, len(made), "these labels"))
    if not made:
        return spent
    draw = made[-1].coefficients
    note = f"Draw {len(made)} of these labels; Laplace noise of scale {wording.number(draw.release.scale)}."
    return released_lines(made[-1].names, draw.release.values, note, draw.facts.label, spent)
