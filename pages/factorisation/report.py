"""What this page contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.dataset import Dataset
from dpcore.factorisation.data_cell import data_cell
from dpcore.factorisation.parameters import Algorithm, RatingSource
from dpcore.report.content import Line, data_lines
from dpcore.report.script import Source
from pages.factorisation import card
from pages.factorisation import figures as factorisation_charts
from pages.factorisation.answer import FactorisationView
from pages.factorisation.question import DESCENT, GENERATOR, QUESTION, RANGE
from pages.shared.report.report_content import ReportContent


def factorisation_report(view: FactorisationView, data: Dataset, source: Source) -> ReportContent:
    """The report of the page Factorisation."""
    parameters = view.parameters
    own = parameters.source is RatingSource.DATA
    descent = parameters.algorithm is Algorithm.DESCENT
    unused = {*(GENERATOR if own else RANGE), *(() if descent else DESCENT), "item"}
    ratings, kind = view.table.ratings, view.table.disclosure
    lines = tuple(
        Line(name, wording.number(number), kind, number=number)
        for name, number in (
            ("Users", ratings.num_users),
            ("Items", ratings.num_items),
            ("Ratings", ratings.num_ratings),
        )
    )
    named = data_lines(data) if own else (Line("Data", "generated ratings", kind),)
    return ReportContent(
        question=QUESTION,
        parameters=parameters,
        asked=QUESTION.asked(*(name for name in QUESTION.fields if name not in unused)),
        cards=[("", card.card(view))],
        pictures=factorisation_charts.pictures(view),
        source=replace(source, cell=data_cell(parameters)),
        summary=(*named, *lines),
    )
