"""Examples per user: how many examples of one user a training by DP-SGD may see, and whom it draws."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.examples_per_user import ExamplesParameters
from dpcore.examples_per_user.answer import build_answer
from pages.examples_per_user import owners, tabs, work
from pages.examples_per_user.question import QUESTION
from pages.shared.base import keys
from pages.shared.data import own_data
from pages.shared.fields import fields
from pages.shared.screen import answer_tabs, inputs, layout, plots
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters: ExamplesParameters | None = inputs.read(QUESTION, places)
    if parameters is None:
        return
    with places.notes:
        try:
            found = work.find(data, parameters)
        except InvalidInput as refused:
            fields.say(refused.problems)
            return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    answer = build_answer(data, parameters, found)
    with places.figure:
        plots.show(answer.plots["examples-error"]())
    with own_data.state_line(places.below, QUESTION):
        work.show_state()
    of: dict[str, answer_tabs.Content] = {
        "Studies": {
            "Noise": lambda: tabs.show_noise(answer),
            "Examples kept": lambda: tabs.show_kept(answer),
            "Several owners": lambda: owners.show(parameters, data),
        },
    }
    answer_tabs.show(places, QUESTION, answer, of, lambda: tabs.show_files(answer))


layout.show(QUESTION, body)
