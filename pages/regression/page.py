"""Regression: the best linear estimator under label privacy, and what caps cost beside it."""

import streamlit as st

from pages.regression import card, data, inputs, release, studies, tabs, work
from pages.regression import figures as regression_charts
from pages.regression.answer import ErrorOf, RegressionView
from pages.regression.question import QUESTION
from pages.shared.base import keys, page_run
from pages.shared.data import own_data
from pages.shared.fields import fields, ranges
from pages.shared.figures import figures
from pages.shared.screen import answer_tabs, layout


def body(places: layout.Places) -> None:
    """Read data and inputs, and draw the answer."""
    fields.start(QUESTION)
    with places.notes:
        loaded = data.read_data()
    if loaded is None:
        return
    parameters, of = inputs.read(loaded, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    page_run.compares(loaded.dataset)
    with places.notes:
        view = work.answer(loaded, parameters)
    if view is not None:
        page_run.answers(view.parameters)
        with places.figure:  # First: its message goes ahead of all others.
            show_errors(view, of)
    with own_data.state_line(places.below, QUESTION):
        work.show_state(view)
    if view is None:
        return
    tabs_of = {
        "Release": lambda: release.show(view),
        "Weights": lambda: tabs.show_weights(view),
        "Against ε": lambda: studies.show_over_epsilon(view, of),
        "Figures 1 and 2": lambda: studies.show_paper_figures(parameters, of),
        "Search": lambda: tabs.show_search(view),
        "Examples": studies.show_examples,
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view),
        tabs_of,
        lambda: tabs.show_files(view),
        behind=lambda answer: tabs.show_behind(view, answer),
    )


def show_errors(view: RegressionView, of: ErrorOf) -> None:
    """The main figure."""
    limits = regression_charts.cap_limits(view, of)
    version = f"{view.loaded.dataset.digest[:8]}_{of.value}_{view.parameters.value_bound:g}"
    with ranges.under_figure("regression_ranges") as (chart, below):
        x = ranges.range_control("Bound, rows per user", f"regression_x_{version}", *limits[0])
        y = ranges.range_control("Error", f"regression_y_{version}", *limits[1])
    figures.show_picture(regression_charts.cap_picture(view, of, (x, y)), below, chart)


layout.show(QUESTION, body)
