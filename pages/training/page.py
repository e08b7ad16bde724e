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


def body(slots: layout.PageSlots) -> None:
    """Read data and inputs, and draw the answer."""
    fields.start(QUESTION)
    with slots.notes:
        training_data = work.read_data()
    if training_data is None:
        return
    parameters, measure, unit = work.read_inputs(slots)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    page_run.compares(training_data)
    with slots.notes:
        work.show_label_rule(training_data, parameters.positive_above)
        try:
            solution = work.find(training_data, parameters)
        except InvalidInput as refused:
            fields.show_problems(refused.problems)
            solution = None
    if solution is not None and solution.best is None:
        solution = None  # Its first runs are being made.
    contents.collect()  # Whatever tab is open, and before files and methods are made.
    answer = None if solution is None else build_answer(solution.data, solution.parameters, solution)
    if answer is not None:
        page_run.answers(answer.parameters)
        with slots.figure:  # First: its message goes ahead of all others.
            plots.draw(plot_methods(answer.solution, measure, unit))
    with table_upload.state_line(slots.bottom, QUESTION):
        work.show_state(solution)
    if answer is None:
        return
    tabs: dict[str, layout.Content] = {
        "Release": lambda: contents.show(answer.solution),
        "Studies": {
            "Against the bound": lambda: plots.draw(plot_bounds(answer.solution, measure, unit)),
            "Rows and users": lambda: contents.show_sides(answer),
            "Theory": lambda: contents.show_theory(answer.solution),
            "The paper's learner": lambda: contents.show_paper(answer.solution),
        },
    }
    layout.show_answer(
        slots, QUESTION, answer, tabs, lambda: contents.show_files(answer), draw_behind=contents.show_behind
    )


layout.show(QUESTION, body)
