"""Mean: the best cap and the best smooth weights for releasing a mean."""

import streamlit as st

from dpcore.mean import MeanParameters
from pages.mean import answer as mean_view
from pages.mean import cached, card, simulations, tabs
from pages.mean import figures as mean_figures
from pages.mean import inputs as mean_inputs
from pages.mean.question import QUESTION
from pages.shared import answer_tabs, figures, keys, layout, ranges, session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = mean_inputs.read(data, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    clamped = cached.clamped_values(data.digest, parameters.lower, parameters.upper, data)
    view = cached.mean_answer(data, parameters, clamped)
    with places.figure:  # First: the browser draws it while the rest is still on its way.
        limits = show_errors(view, parameters)
    of = {
        "Weight of a row": lambda: tabs.show_weights(data, view, limits[0]),
        "What independence hides": lambda: tabs.show_hidden(data, view, clamped, limits[0]),
    }
    if view.private_counts:
        of["Simulation"] = lambda: simulations.show(view, parameters.lower, parameters.upper, data, *limits)
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view, data, parameters, clamped),
        of,
        lambda: tabs.show_files(data, view, parameters, clamped),
        used=lambda: mean_inputs.what_is_used(data, parameters, clamped),
        formula="formula_private" if view.private_counts else "formula",
    )


def show_errors(view: mean_view.MeanView, parameters: MeanParameters) -> mean_view.Limits:
    """The main figure; returns its axes."""
    version = session.data_version()
    (bound_limits, error_limits), offered = cached.error_axis(data.digest, parameters.value_bound, data)
    with ranges.under_figure("mean_ranges") as (chart, below):
        x = ranges.range_control("Bound, rows per user", f"mean_x_{version}", *bound_limits)
        y_key = f"mean_y_{version}_{parameters.value_bound:g}"
        y = ranges.range_control("Standard error, unit of the values", y_key, *error_limits, reach=offered)
    picture = mean_figures.error_picture(view, data, parameters.own_cap, (x, y))
    figures.show_picture(picture, below, chart)
    if outside := mean_view.outside(view, (x, y), parameters.own_cap):
        chart.caption(f"Outside the axes: {' and '.join(outside)}. *Axis ranges* widens them.")
    return x, y


layout.show(QUESTION, body)
