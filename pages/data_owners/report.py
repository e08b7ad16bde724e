"""What Data owners contributes to its report. Pure: answers in, content out."""

from __future__ import annotations

from dataclasses import replace

from dpcore.common import wording
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.data_cell import data_cell
from dpcore.data_owners.files import owners_choice_json
from dpcore.data_owners.parameters import TRAINING
from dpcore.dataset import Dataset
from dpcore.report.content import Line, data_lines
from dpcore.report.script import Source
from pages.data_owners import answer, card, figures
from pages.data_owners.answer import OwnersView
from pages.data_owners.question import QUESTION
from pages.data_owners.trained import TITLE, Trained
from pages.shared.report_content import ReportContent, distribution


def choice_json(view: OwnersView, data: Dataset) -> str:
    """The answer as JSON."""
    return owners_choice_json(data, view.parameters, view.of, view.cap, view.disclosure)


def owners_report(
    view: OwnersView, data: Dataset, source: Source, trained: Trained | None = None
) -> ReportContent:
    """The report of the page Data owners, with what training has found, if any."""
    pictures = [figures.map_picture(view), figures.bound_picture(view)]
    own = {*TRAINING, "owners", "records", "own_cap", "records_per_user", "x_axis", "y_axis"}
    asked = [name for name in QUESTION.fields if name not in own]
    if view.of_data:
        pictures += [figures.cap_picture(view, answer.cap_curve(data, view), data), distribution(data)]
        summary, asked = data_lines(data), [*asked, "own_cap"]
    else:
        summary = (
            Line("Owners", wording.number(view.parameters.owners), view.disclosure),
            Line("Records per owner", wording.number(view.parameters.records), view.disclosure),
        )
        asked = ["owners", "records", *asked]
        source = replace(source, disclosure=view.disclosure)
    answers = [("", card.card(view, data))]
    if trained is not None:
        pictures.append(trained.picture)
        answers.append((TITLE, trained.card))
        if trained.is_private:  # The bounds may be public: the file as a whole is not.
            source = replace(source, disclosure=trained.disclosure)
    if view.parameters.unit is Unit.USER:
        asked.append("records_per_user")
    return ReportContent(
        question=QUESTION,
        parameters=view.parameters,
        asked=QUESTION.asked(*asked),
        cards=answers,
        pictures=pictures,
        source=replace(source, cell=data_cell(view.parameters)),
        summary=summary,
        choice=lambda: choice_json(view, data),
    )
