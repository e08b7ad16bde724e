"""Sum and count: the best bound on what one user adds to a sum or a count."""

import streamlit as st

from dpcore.total.parameters import TotalParameters, UserTotals
from pages.shared import cards, figures, keys, lazy_tabs, session
from pages.shared.text import plain
from pages.total import (
    answer as total_view,
)
from pages.total import (
    cached,
    inputs,
    signed_card,
)
from pages.total import (
    card as total_words,
)
from pages.total import (
    figures as total_charts,
)
from pages.total import (
    tabs as total_tabs,
)
from pages.total.formula import FORMULA
from pages.total.question import QUESTION

GROUPED = "Counts, sums and means per group (GROUP BY) have a page of their own"
data = session.dataset()
st.title("Sum and count")
st.markdown(
    "You release how many rows there are, or what they add up to, with differential privacy for every user. "
    "**How much may one user add?** A low bound T cuts contributions away; a high one needs more noise."
)


def show(held: UserTotals, parameters: TotalParameters) -> None:
    """The answer for totals of at least 0, with its curves."""
    assert held.amounts is not None
    if held.amounts.total == 0.0:
        st.info("All totals are 0: there is nothing to release.", icon=":material/info:")
        return
    view = cached.total_answer(data.digest, parameters, held)
    stem = f"total_error_{parameters.summed.value}"
    answer, picture = st.columns([5, 6])
    code = st.container()
    with answer:
        cards.show(total_words.card(view, data), key="total_card", below=code)
    chart = picture.container()
    below = picture.container(horizontal=True, vertical_alignment="center")
    labels = f"Bound T, {view.unit.axis}", f"Error, {view.unit.axis}"
    x, y = total_tabs.axis_ranges(below, stem, labels, view.limits)
    figures.show(
        total_charts.error_figure(view, (x, y)),
        "total_error",
        total_charts.error_alt(view),
        total_charts.error_columns(view.errors),
        data.provenance,
        place=chart,
        below=below,
    )
    if view.choice.max_total == 0.0:
        chart.caption("The best T, 0, has no place on a log axis.")
    elif not (x[0] <= view.choice.max_total <= x[1] and y[0] <= view.choice.certificate.value <= y[1]):
        chart.caption("The best point lies outside the axes: widen them under *Axis ranges*.")
    picture.markdown(total_words.measures_table(view))
    picture.caption(total_words.bound_sentence(view))
    noises = picture.container()
    show_tabs(view, parameters)
    with noises:  # Last: the exact Gaussian noise takes a second or two to load the first time.
        total_tabs.compare_noises(data, view.problem, parameters)


def show_tabs(view: total_view.TotalView, parameters: TotalParameters) -> None:
    """What stands below the answer."""
    tabs = {
        "Four ways to choose T": lambda: total_tabs.strategies(data, view.problem, parameters),
        "Downloads": lambda: total_tabs.files(data, view, parameters),
        "How this is computed": lambda: st.markdown(FORMULA),
    }
    lazy_tabs.draw(tabs, QUESTION.key("tabs"))
    st.page_link(session.page_file("Per group"), label=GROUPED, icon=":material/table_rows:")


def show_signed(held: UserTotals, parameters: TotalParameters) -> None:
    """The offer for totals of both signs: clip to [L, U]."""
    st.warning(plain(held.refusal, 600), icon=":material/warning:")
    view = cached.signed_answer(data.digest, parameters, held)
    answer, picture = st.columns([5, 6])
    code = st.container()
    with answer:
        card = signed_card.card(view, data, total_view.Unit(held.column), parameters)
        cards.show(card, key="total_card", below=code)
    with picture:
        chart, below = st.container(), st.container(horizontal=True, vertical_alignment="center")
    labels = "T of [−T, T], unit of the column", "Error, unit of the column"
    limits = total_tabs.axis_ranges(below, "total_signed", labels, total_charts.signed_limits(view))
    figures.show(
        total_charts.signed_figure(view, parameters.measure, limits),
        "total_signed",
        total_charts.SIGNED_ALT,
        total_charts.error_columns(view.errors),
        data.provenance,
        place=chart,
        below=below,
    )
    tabs = {
        "Downloads": lambda: total_tabs.signed_files(data, held, view, parameters),
        "How this is computed": lambda: st.markdown(FORMULA),
    }
    lazy_tabs.draw(tabs, QUESTION.key("signed_tabs"))


inputs.start()
held = cached.held_totals(data.digest, st.session_state[QUESTION.key("summed")], data)
with st.container(border=True, key="total_inputs"):
    inputs.main(signed=held.signed is not None)
    chosen = inputs.parameters()
    st.caption(total_words.summed_sentence(held, data, st.session_state[QUESTION.key("summed")]))
if chosen is not None:
    st.session_state[keys.PAGE_PARAMETERS] = chosen
    if held.amounts is not None:
        show(held, chosen)
    elif held.signed is not None:
        show_signed(held, chosen)
    else:
        st.info(plain(held.refusal, 400), icon=":material/info:")
        st.page_link(session.page_file("Your data"), label="Bring data with values", icon=":material/upload:")
