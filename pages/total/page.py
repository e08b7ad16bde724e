"""Sum and count: the best bound on what one user adds to a sum or a count."""

import streamlit as st

from dpcore.total.parameters import TotalParameters, UserTotals
from pages.shared import cards, figures, keys, layout, lazy_tabs, session
from pages.shared.text import plain
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
            st.page_link(
                session.page_file("Your data"), label="Bring data with values", icon=":material/upload:"
            )
            return
        if held.amounts is not None and held.amounts.total == 0.0:
            st.info("All totals are 0: there is nothing to release.", icon=":material/info:")
            return
    (show_signed if held.amounts is None else show)(places, held, parameters)


def show(places: layout.Places, held: UserTotals, parameters: TotalParameters) -> None:
    """The answer for totals of at least 0, with its curves."""
    view = cached.total_answer(data, held, parameters)
    answer = card.card(view, data, parameters.own_bound)
    with places.figure:
        chart, below = st.container(), st.container(horizontal=True, vertical_alignment="center")
        labels = view.unit.bound_axis, f"Error, {view.unit.axis}"
        x, y = tabs.axis_ranges(below, f"total_error_{parameters.summed.value}", labels, view.limits)
        picture = total_figures.error_picture(view, data, parameters.own_bound, (x, y))
        figures.show_picture(picture, below, chart)
    if view.choice.max_total == 0.0:
        chart.caption("The best T, 0, has no place on a log axis.")
    elif not (x[0] <= view.choice.max_total <= x[1] and y[0] <= view.choice.certificate.value <= y[1]):
        chart.caption("The best point lies outside the axes: widen them under *Axis ranges*.")
    with places.answer:
        cards.answer(answer, key="total_card")
    of = {
        layout.BEHIND: lambda: tabs.show_behind(data, held, parameters, answer),
        "Measures and noise": lambda: tabs.show_measures(data, view, parameters),
        "Four ways to choose T": lambda: tabs.show_strategies(data, view.problem, parameters),
        layout.DOWNLOADS: lambda: tabs.show_files(data, view, parameters),
        layout.COMPUTED: tabs.show_formula,
    }
    with places.below:
        lazy_tabs.draw(of, QUESTION.key("tabs"))
        st.page_link(session.page_file("Per group"), label=GROUPED, icon=":material/table_rows:")


def show_signed(places: layout.Places, held: UserTotals, parameters: TotalParameters) -> None:
    """The offer for totals of both signs: clip to [L, U]."""
    view = cached.signed_answer(data, held, parameters)
    answer = signed_card.card(view, data, held, parameters)
    with places.figure:
        chart, below = st.container(), st.container(horizontal=True, vertical_alignment="center")
        labels = "T of [−T, T], unit of the column", "Error, unit of the column"
        limits = tabs.axis_ranges(below, "total_signed", labels, total_figures.signed_limits(view))
        picture = total_figures.signed_picture(view, data, parameters.measure, limits)
        figures.show_picture(picture, below, chart)
    with places.answer:
        cards.answer(answer, key="total_card")
    of = {
        layout.BEHIND: lambda: tabs.show_behind(data, held, parameters, answer),
        layout.DOWNLOADS: lambda: tabs.show_signed_files(data, held, view, parameters),
        layout.COMPUTED: tabs.show_formula,
    }
    with places.below:
        lazy_tabs.draw(of, QUESTION.key("signed_tabs"))


layout.show(QUESTION, body)
