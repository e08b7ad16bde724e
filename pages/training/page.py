"""Training: a private classifier under a bound on what a user brings, trained many times at every bound."""

import streamlit as st

from dpcore.common.checks import InvalidInput
from dpcore.training.answer import build_answer
from dpcore.training.answer.plots import plot_bounds, plot_methods
from pages.shared.base import keys, page_run
from pages.shared.data import table_upload
from pages.shared.fields import fields
from pages.shared.screen import layout, plots
from pages.training import contents, work
from pages.training.question import QUESTION


def body(places: layout.Places) -> None:
    """Read data and inputs, and draw the answer."""
    fields.start(QUESTION)
    with places.notes:
        loaded = work.read_data()
    if loaded is None:
        return
    parameters, measure, over = work.read_inputs(places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    page_run.compares(loaded)
    with places.notes:
        work.show_label_rule(loaded, parameters.positive_above)
        try:
            found = work.find(loaded, parameters)
        except InvalidInput as refused:
            fields.say(refused.problems)
            found = None
    if found is not None and found.best is None:
        found = None  # Its first runs are being made.
    contents.collect()  # Whatever tab is open, and before files and methods are made.
    answer = None if found is None else build_answer(found.data, found.parameters, found)
    if answer is not None:
        page_run.answers(answer.parameters)
        with places.figure:  # First: its message goes ahead of all others.
            plots.draw(plot_methods(answer.solution, measure, over))
    with table_upload.state_line(places.below, QUESTION):
        work.show_state(found)
    if answer is None:
        return
    of: dict[str, layout.Content] = {
        "Release": lambda: contents.show(answer.solution),
        "Studies": {
            "Against the bound": lambda: plots.draw(plot_bounds(answer.solution, measure, over)),
            "Rows and users": lambda: contents.show_sides(answer),
            "Theory": lambda: contents.show_theory(answer.solution),
            "The paper's learner": lambda: contents.show_paper(answer.solution),
        },
    }
    layout.show_answer(
        places, QUESTION, answer, of, lambda: contents.show_files(answer), draw_behind=contents.show_behind
    )


layout.show(QUESTION, body)
