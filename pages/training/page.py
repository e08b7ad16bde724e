"""Training: a private classifier under a bound on what a user brings, trained many times at every bound."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.training.parameters import TrainingParameters
from pages.shared.base import keys, page_run
from pages.shared.data import own_data
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.screen import answer_tabs, layout
from pages.training import card, data, inputs, paper, release, tabs, work
from pages.training import figures as training_charts
from pages.training.answer import TrainingView
from pages.training.question import QUESTION
from pages.training.upload import TrainingData


def body(places: layout.Places) -> None:
    """Read data and inputs, and draw the answer."""
    fields.start(QUESTION)
    with places.notes:
        loaded = data.read_data()
    if loaded is None:
        return
    parameters, measure, over = inputs.read(places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    page_run.compares(loaded)
    view = _answer(loaded, parameters, places)
    if view is not None:
        page_run.answers(view.parameters)
        with places.figure:  # First: its message goes ahead of all others.
            figures.show_picture(training_charts.main_picture(view, measure, over))
    with own_data.state_line(places.below, QUESTION):
        work.show_state(view)
    if view is None:
        return
    of = {
        "Release": lambda: release.show(view),
        "Rows and users": lambda: tabs.show_sides(view),
        "Theory": lambda: tabs.show_theory(view),
        "The paper's learner": lambda: paper.show(view),
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view),
        of,
        lambda: tabs.show_files(view),
        behind=lambda answer: tabs.show_behind(view, answer),
    )


def _answer(
    loaded: TrainingData, parameters: TrainingParameters, places: layout.Places
) -> TrainingView | None:
    """The answer with at least its first runs; None with sentences, or while these are made."""
    with places.notes:
        try:
            view = work.answer(loaded, parameters)
        except InvalidInput as refused:
            fields.say(refused.problems)
            return None
    return view if view is not None and view.best is not None else None


layout.show(QUESTION, body)
