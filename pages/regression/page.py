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

MAIN = {ErrorOf.COEFFICIENTS: "regression-errors", ErrorOf.PREDICTIONS: "regression-errors-predictions"}
AGAINST = {ErrorOf.COEFFICIENTS: "regression-caps", ErrorOf.PREDICTIONS: "regression-predictions"}
"""The main figure, and that against the bound, by the error that they are to show."""


def body(places: layout.Places) -> None:
    """Read data and inputs, and draw the answer."""
    fields.start(QUESTION)
    with places.notes:
        loaded = work.read_data()
    if loaded is None:
        return
    parameters, of = work.read_inputs(loaded, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    page_run.compares(loaded.dataset)
    with places.notes:
        shown = work.find(loaded, parameters)
    answer = None
    if shown is not None:
        loaded, found = shown
        answer = build_answer(found.data, found.parameters, found)
        page_run.answers(answer.parameters)
        with places.figure:  # First: its message goes ahead of all others.
            plots.show(answer.plots[MAIN[of]]())
    with table_upload.state_line(places.below, QUESTION):
        work.show_state(None if answer is None else answer.solution)
    if answer is None:
        return
    tabs_of: dict[str, layout.Content] = {
        "Release": lambda: contents.show(loaded, found),
        "Studies": {
            "Against the bound": lambda: plots.show(answer.plots[AGAINST[of]]()),
            "Weights": lambda: contents.show_weights(answer),
            "Against ε": lambda: contents.show_over_epsilon(found, of),
            "Figures 1 and 2": lambda: contents.show_paper_figures(parameters, of),
            "Search": lambda: contents.show_search(found),
            "Examples": contents.show_examples,
        },
    }
    layout.show_answer(
        places,
        QUESTION,
        answer,
        tabs_of,
        lambda: contents.show_files(answer, loaded),
        draw_behind=contents.show_behind,
    )


layout.show(QUESTION, body)
