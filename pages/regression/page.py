"""Regression: the best linear estimator under label privacy, and what caps cost beside it."""

import streamlit as st

from dpcore.regression.answer import build_answer
from dpcore.regression.answer.solution import ErrorOf
from pages.regression import contents, work
from pages.regression.question import QUESTION
from pages.shared.base import keys, page_run
from pages.shared.data import table_upload
from pages.shared.fields import fields
from pages.shared.screen import layout, plots

MAIN_PLOTS = {ErrorOf.COEFFICIENTS: "regression-errors", ErrorOf.PREDICTIONS: "regression-errors-predictions"}
BOUND_PLOTS = {ErrorOf.COEFFICIENTS: "regression-caps", ErrorOf.PREDICTIONS: "regression-predictions"}
"""The main figure, and that against the bound, by the error that they are to show."""


def body(slots: layout.PageSlots) -> None:
    """Read data and inputs, and draw the answer."""
    fields.start(QUESTION)
    with slots.notes:
        loaded_data = work.read_data()
    if loaded_data is None:
        return
    parameters, error = work.read_inputs(loaded_data, slots)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    page_run.compares(loaded_data.dataset)
    with slots.notes:
        data_and_solution = work.find(loaded_data, parameters)
    answer = None
    if data_and_solution is not None:
        loaded_data, solution = data_and_solution
        answer = build_answer(solution.data, solution.parameters, solution)
        page_run.answers(answer.parameters)
        with slots.figure:  # First: its message goes ahead of all others.
            plots.show(answer.plots[MAIN_PLOTS[error]]())
    with table_upload.state_line(slots.bottom, QUESTION):
        work.show_state(None if answer is None else answer.solution)
    if answer is None:
        return
    tabs_of: dict[str, layout.Content] = {
        "Release": lambda: contents.show(loaded_data, solution),
        "Studies": {
            "Against the bound": lambda: plots.show(answer.plots[BOUND_PLOTS[error]]()),
            "Weights": lambda: contents.show_weights(answer),
            "Against ε": lambda: contents.show_over_epsilon(solution, error),
            "Figures 1 and 2": lambda: contents.show_paper_figures(parameters, error),
            "Search": lambda: contents.show_search(solution),
            "Examples": contents.show_examples,
        },
    }
    layout.show_answer(
        slots,
        QUESTION,
        answer,
        tabs_of,
        lambda: contents.show_files(answer, loaded_data),
        draw_behind=contents.show_behind,
    )


layout.show(QUESTION, body)
