"""Learning under a cap: how many rows of one user a private learner may see, and what that costs."""

import streamlit as st

from dpcore.learning import LearningParameters
from pages.learning import answer as learning_view
from pages.learning import cached, card, inputs, population_tabs, tabs
from pages.learning import figures as learning_charts
from pages.learning.question import QUESTION
from pages.shared import answer_tabs, figures, keys, layout, ranges, session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    view = cached.learning_answer(data.digest, parameters.about_data, data)
    with places.figure:  # First: the browser draws it while the rest is still on its way.
        limits = show_bound(view, parameters)
    of = {
        "All bounds on the bias": lambda: tabs.show_terms(view, parameters, data, limits),
        "Who is capped": lambda: tabs.show_capped(view, parameters, data),
        "Figure 2": lambda: population_tabs.show_mass(parameters),
        "Figure 3": lambda: population_tabs.show_cost_over_caps(parameters),
        "Cost of privacy": lambda: population_tabs.show_cost_over_rows(parameters),
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view, data, parameters),
        of,
        lambda: tabs.show_files(view, parameters, data),
        used=lambda: card.what_is_used(parameters),
    )


def show_bound(view: learning_view.LearningView, parameters: LearningParameters) -> learning_view.Limits:
    """The main figure; returns its axes."""
    caps, bounds = learning_view.axis_limits(view)
    with ranges.under_figure("learning_ranges") as (chart, below):
        # Where the bound on the bias reads τ₀ alone, the axis of the cap is another one.
        version = f"{session.data_version()}_{caps[1]:g}"
        x = ranges.range_control("Cap, rows per user", f"learning_x_{version}", *caps, room=1.0)
        y = ranges.range_control("Bound on the excess risk", f"learning_y_{session.data_version()}", *bounds)
    figures.show_picture(
        learning_charts.bound_picture(view, parameters.own_cap, data.provenance, (x, y)), below, chart
    )
    if not (y[0] <= view.choice.total <= y[1] and x[0] <= view.choice.cap <= x[1]):
        chart.caption("The best point lies outside the axes: widen them under *Axis ranges*.")
    return x, y


layout.show(QUESTION, body)
