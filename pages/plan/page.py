"""Plan: several numbers about one table share one budget."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from pages.plan import cached, inputs, tabs
from pages.plan.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import fields
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the lines and show how they share the budget."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    try:
        answer = cached.plan_answer(data, parameters)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        return
    with places.figure:
        plots.show(answer.plots["plan-errors"]())
    of: dict[str, answer_tabs.Content] = {
        "Shares": lambda: tabs.show_shares(answer),
        "Alternatives": {
            "Laplace or Gaussian": lambda: tabs.show_noises(data, answer),
            "One bound for all": lambda: tabs.show_one_bound(data, answer),
        },
    }
    answer_tabs.show(
        places, QUESTION, answer, of, lambda: tabs.show_files(data, answer), draw_behind=tabs.show_behind
    )


layout.show(QUESTION, body)
