"""Sum and count: the best bound on what one user adds to a sum or a count."""

import streamlit as st

from dpcore.common.wording import plain
from dpcore.total.answer import refused, words
from pages.shared.base import keys
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session, stand_ins
from pages.total import cached, inputs, tabs
from pages.total.question import QUESTION

GROUPED = "Per group (GROUP BY): a page of its own"
data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer; for totals of both signs, the offer to clip them to [L, U]."""
    inputs.start()
    held = cached.held_totals(data.digest, st.session_state[QUESTION.key("summed")], data)
    signed = held.signed is not None
    inputs.show(places, signed)
    with places.notes:
        parameters = inputs.parameters()
        if parameters is None:
            return
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        if why := refused(held):
            st.info(plain(why, 400), icon=":material/info:")
            if held.amounts is None:
                stand_ins.bring("Bring data with values")
            return
    answer = cached.total_answer(data, parameters)
    with places.figure:
        if signed:
            plot = answer.plots["total-signed"]()
            plots.show(plot, moves=QUESTION.key)
            if plot.handle is None:
                st.caption(
                    "The curve is of ranges [−T, T]. Yours has ends of two sizes, so that none can be dragged."
                )
        else:
            plots.show(answer.plots["total-error"](), moves=QUESTION.key)
        if not signed and answer.solution.choice.max_total == 0.0:
            st.caption("The best bound, 0, has no place on a log axis.")
    of: dict[str, answer_tabs.Content] = {
        "Measures and noise": lambda: tabs.show_measures(answer),
        "Four ways to choose a bound": lambda: tabs.show_strategies(data, answer),
    }
    answer_tabs.show(
        places,
        QUESTION,
        answer,
        {} if signed else of,
        lambda: tabs.show_files(data, answer, signed),
        used=lambda: words.summed(held, data),
        remembered="signed_tabs" if signed else "tabs",
    )
    if not signed:
        with places.below:
            st.page_link(session.page_file("Per group"), label=GROUPED, icon=":material/table_rows:")


layout.show(QUESTION, body)
