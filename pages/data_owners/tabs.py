"""The downloads of Data owners, with what the last training found."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dpcore.answer import Answer
from dpcore.data_owners.answer import answer as answer_answer
from dpcore.data_owners.answer.trained import TITLE, TrainingCard
from dpcore.data_owners.bounds import Unit
from dpcore.data_owners.parameters import TRAINING_FIELDS
from dpcore.report.content import Report
from dpcore.report.script import Code, Source
from pages.data_owners import training
from pages.data_owners.question import QUESTION
from pages.shared.report import report_content, take_away


def content(answer: Answer, source: Source, trained: TrainingCard | None = None) -> Report:
    """Return what the page contributes to its report, with what training has found, if any."""

    def entered(code: Code, source: Source, public_only: bool) -> str:
        kind = code.write(answer.disclosure)
        return f"data = {kind}  # The settings hold the owners; this is what kind of numbers they are."

    found, parameters, summary = answer.solution, answer.parameters, None
    own = {*TRAINING_FIELDS, "owners", "records", "own_cap", "records_per_user", "x_axis", "y_axis"}
    asked = [name for name in QUESTION.fields if name not in own]
    if found.is_of_data:
        asked.append("own_cap")
    else:
        asked, summary = ["owners", "records", *asked], answer_answer.summarise_owners(found)
        source = replace(source, disclosure=answer.disclosure, write_cell=entered)
    if parameters.unit is Unit.USER:
        asked.append("records_per_user")
    if trained is not None and trained.is_private:
        # The bounds may be public: the file as a whole is not.
        source = replace(source, disclosure=trained.disclosure)
    of = report_content.of_answer(
        QUESTION, answer, source, setting_labels=QUESTION.asked(*asked), summary=summary
    )
    if trained is None:
        return of
    return replace(of, answers=(*of.answers, (TITLE, trained.card)), figures=(*of.figures, trained.plot))


def show_files(answer: Answer) -> None:
    """The whole answer, and the choice as a file."""
    source, found = take_away.source(), training.finished()
    disclosure = answer.disclosure if found is None or not found.is_private else found.disclosure
    holds = "**Choice** holds the question, every bound and every crossing. Label: "
    take_away.draw(
        "owners",
        disclosure,
        lambda: content(answer, source, found),
        answer.methods,
        f"{holds}*{answer.disclosure.label}*.",
        files_disclosure=answer.disclosure,
    )
    if found is None:
        st.caption("Nothing was trained, so that the report holds the bounds alone: see the tab *Accuracy*.")
    else:
        st.caption(
            f"The report holds the accuracies of the last training, too. Their label: *{found.disclosure.label}*."
        )
