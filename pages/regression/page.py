"""Regression: the best linear estimator under label privacy, and what caps cost beside it."""

import streamlit as st

from dpcore.regression.parameters import RegressionParameters
from pages.regression import card, data, inputs, release, studies, tabs, work
from pages.regression import figures as regression_charts
from pages.regression.answer import ErrorOf, RegressionView
from pages.regression.question import QUESTION
from pages.shared import cards, drawn, fields, figures, keys, layout, lazy_tabs, ranges


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
    drawn.compares(loaded.dataset)
    with places.notes:
        view = work.answer(loaded, parameters)
    if view is not None:
        drawn.answers(view.parameters)
        with places.figure:  # First: its message goes ahead of all others.
            show_errors(view, of)
        answer = card.card(view)
        with places.answer:
            cards.answer(answer, key="regression_card")
    with (
        places.below,
        st.container(
            horizontal=True,
            vertical_alignment="center",
            height=STATE_HEIGHT,
            border=False,
            key="regression_state",
        ),
    ):
        work.show_state(view)
    if view is not None:
        with places.below:
            show_tabs(view, parameters, answer, of)


STATE_HEIGHT = 56
"""In pixels, of the line that says how far the search is: with a button or without, the tabs below it stay."""


def show_errors(view: RegressionView, of: ErrorOf) -> None:
    """The main figure."""
    limits = regression_charts.cap_limits(view, of)
    version = f"{view.loaded.dataset.digest[:8]}_{of.value}_{view.parameters.value_bound:g}"
    chart = st.container()
    below = st.container(horizontal=True, vertical_alignment="center")
    with below.popover("Axis ranges", icon=":material/straighten:", key="regression_ranges"):
        x = ranges.range_control("Bound, rows per user", f"regression_x_{version}", *limits[0])
        y = ranges.range_control("Error", f"regression_y_{version}", *limits[1])
        st.caption("The axes stay put while you move ε, so that curves can be compared.")
    figures.show_picture(regression_charts.cap_picture(view, of, (x, y)), below, chart)


def show_tabs(
    view: RegressionView, parameters: RegressionParameters, answer: cards.AnswerCard, of: ErrorOf
) -> None:
    """What stands behind the answer, the release, and the other figures."""
    lazy_tabs.draw(
        {
            layout.BEHIND: lambda: tabs.show_behind(view, answer),
            "Release": lambda: release.show(view),
            "Weights": lambda: tabs.show_weights(view),
            "Against ε": lambda: studies.show_over_epsilon(view, of),
            "Figures 1 and 2": lambda: studies.show_paper_figures(parameters, of),
            "Search": lambda: tabs.show_search(view),
            "Examples": studies.show_examples,
            layout.DOWNLOADS: lambda: tabs.show_files(view),
            layout.COMPUTED: lambda: st.markdown(QUESTION.formula()),
        },
        QUESTION.key("tabs"),
    )


layout.show(QUESTION, body)
