"""Sum and count: the best bound on what one user adds to a sum or a count."""

import streamlit as st

from dpcore.common.wording import plain
from dpcore.total.answer import explain_refusal, refused_answer, words
from dpcore.total.parameters import TotalParameters, UserTotals
from pages.shared.base import keys
from pages.shared.card import cards
from pages.shared.screen import answer_tabs, inputs, layout, plots
from pages.shared.session import session, stand_ins
from pages.total import cached, tabs
from pages.total.question import QUESTION

GROUPED = "Per group (GROUP BY): a page of its own"
data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer; for totals of both signs, the offer to clip them to [L, U]."""

    def totals() -> UserTotals:
        return cached.held_totals(data.digest, st.session_state[QUESTION.key("summed")], data)

    parameters: TotalParameters | None = inputs.read(
        QUESTION, places, hidden=lambda name: name in ("lower", "upper") and totals().signed is None
    )
    if parameters is None:
        return
    held = totals()
    signed = held.signed is not None
    with places.notes:
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        why = explain_refusal(held)
        if why:
            st.info(plain(why, 400), icon=":material/info:")
            if held.amounts is None:
                stand_ins.bring("Bring data with values")
    if why:
        if held.column and data.is_private:
            with places.answer:
                cards.answer(refused_answer(data, parameters, held.column), "total_card")
        return
    answer = cached.total_answer(data, parameters)
    with places.figure:
        if signed:
            plot = plots.main_plot(answer, "total-signed")
            plots.show(plot, moves=QUESTION.key)
            if plot.handle is None:
                st.caption(
                    "The curve is of ranges [−T, T]. Yours has ends of two sizes, so that none can be dragged."
                )
        else:
            plots.show(plots.main_plot(answer, "total-error"), moves=QUESTION.key)
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
        used=lambda: words.describe_totals(held, data),
        remembered="signed_tabs" if signed else "tabs",
    )
    if not signed:
        with places.below:
            st.page_link(session.page_file("Per group"), label=GROUPED, icon=":material/table_rows:")


layout.show(QUESTION, body)
