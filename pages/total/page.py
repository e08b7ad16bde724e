"""Sum and count: the best bound on what one user adds to a sum or a count."""

import streamlit as st

from dpcore.common.markdown import plain
from dpcore.total.parameters import TotalParameters, UserTotals
from pages.shared import answer_tabs, figures, keys, layout, missing, session
from pages.total import cached, card, inputs, signed_card, tabs
from pages.total import figures as total_figures
from pages.total.question import QUESTION

GROUPED = "Counts, sums and means per group (GROUP BY) have a page of their own"
data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    inputs.start()
    held = cached.held_totals(data.digest, st.session_state[QUESTION.key("summed")], data)
    inputs.show(places, signed=held.signed is not None)
    with places.notes:
        parameters = inputs.parameters()
        if parameters is None:
            return
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        if held.amounts is None and held.signed is None:
            st.info(plain(held.refusal, 400), icon=":material/info:")
            missing.bring("Bring data with values")
            return
        if held.amounts is not None and held.amounts.total == 0.0:
            st.info("All totals are 0: there is nothing to release.", icon=":material/info:")
            return
    (show_signed if held.amounts is None else show)(places, held, parameters)


def show(places: layout.Places, held: UserTotals, parameters: TotalParameters) -> None:
    """The answer for totals of at least 0, with its curves."""
    view = cached.total_answer(data, held, parameters)
    with places.figure:
        labels = view.unit.bound_axis, f"Error, {view.unit.axis}"
        stem = f"total_error_{parameters.summed.value}"
        (x, y), chart, below = tabs.axis_ranges(stem, labels, view.limits)
        picture = total_figures.error_picture(view, data, parameters.own_bound, (x, y))
        figures.show_picture(picture, below, chart)
    if view.choice.max_total == 0.0:
        chart.caption("The best T, 0, has no place on a log axis.")
    elif not (x[0] <= view.choice.max_total <= x[1] and y[0] <= view.choice.certificate.value <= y[1]):
        chart.caption("The best point lies outside the axes: widen them under *Axis ranges*.")
    of = {
        "Measures and noise": lambda: tabs.show_measures(data, view, parameters),
        "Four ways to choose T": lambda: tabs.show_strategies(data, view.problem, parameters),
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view, data, parameters.own_bound),
        of,
        lambda: tabs.show_files(data, view, parameters),
        used=lambda: card.summed_sentence(held, data, parameters.summed),
    )
    with places.below:
        st.page_link(session.page_file("Per group"), label=GROUPED, icon=":material/table_rows:")


def show_signed(places: layout.Places, held: UserTotals, parameters: TotalParameters) -> None:
    """The offer for totals of both signs: clip to [L, U]."""
    view = cached.signed_answer(data, held, parameters)
    with places.figure:
        labels = "T of [−T, T], unit of the column", "Error, unit of the column"
        limits, chart, below = tabs.axis_ranges("total_signed", labels, total_figures.signed_limits(view))
        picture = total_figures.signed_picture(view, data, parameters.measure, limits)
        figures.show_picture(picture, below, chart)
    answer_tabs.show(
        places,
        QUESTION,
        signed_card.card(view, data, held, parameters),
        {},
        lambda: tabs.show_signed_files(data, held, view, parameters),
        used=lambda: card.summed_sentence(held, data, parameters.summed),
        remembered="signed_tabs",
    )


layout.show(QUESTION, body)
