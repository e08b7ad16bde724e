"""Quantile: the exact distribution of a private median or quantile, and the bound that serves it best."""

import streamlit as st

from pages.quantile import answer, card, inputs, tabs, work
from pages.quantile import figures as quantile_charts
from pages.quantile.question import QUESTION
from pages.shared import answer_tabs, drawn, figures, jobs, keys, layout, missing, ranges, session

in_use = session.dataset()
demonstration = in_use.values is None
data = missing.demonstration() if demonstration else in_use


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    if demonstration:
        needs = missing.sentence(in_use, "values, one per row", "This page")
        places.notes.markdown(f":small[{needs}]")
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    found = work.find(data, parameters, demonstration or session.same_for_all())
    if found.view is not None:
        version = f"{session.data_version()}_{found.view.parameters.quantiles}"
        drawn.answers(found.view.parameters)
        shown = tabs.Shown(found.view, data, demonstration, bool(found.doing), version)
    with places.figure:  # First: its message goes ahead of all others.
        limits = show_errors(shown) if found.view is not None else None
        # Always there, so that nothing moves when the exact answer has come.
        with st.container(height=tabs.PROGRESS_HEIGHT, border=False):
            if found.doing:
                jobs.watch(work.JOB, found.doing)
    if not found.doing:  # Else the line below the figure says it.
        with places.notes:
            jobs.say_failure(work.JOB)
    if limits is None:
        return
    of = {
        "Where the answer falls": lambda: tabs.where(shown),
        "Base distribution": lambda: tabs.base(shown),
        "The paper's bound": lambda: tabs.paper(shown, limits[0]),
        "Sampled answers": lambda: tabs.samples(shown),
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(shown.view, data, demonstration),
        of,
        lambda: tabs.files(shown),
        used=lambda: inputs.what_is_used(data, shown.view.parameters),
    )
    with places.answer:
        if demonstration:
            missing.bring("Bring data with values")
        if shown.view.choices.cancelled:
            st.button("Search again", key="quantile_again", on_click=work.again, icon=":material/refresh:")


def show_errors(shown: tabs.Shown) -> quantile_charts.Limits:
    """The main figure; returns its axes."""
    bound_limits, error_limits = answer.axis_limits(shown.view)
    with ranges.under_figure("quantile_ranges") as (chart, below):
        x = ranges.range_control("Bound, rows per user", f"quantile_x_{shown.version}", *bound_limits)
        y = ranges.range_control("Rank error, share of rows", f"quantile_y_{shown.version}", *error_limits)
    picture = quantile_charts.error_picture(shown.view, (x, y), shown.about)
    figures.show_picture(picture, below=below, place=chart)
    return x, y


layout.show(QUESTION, body)
