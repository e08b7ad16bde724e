"""Data owners: who should train together, by the bounds and by training."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.data_owners.answer import build_answer
from pages.data_owners import cached, inputs, tabs, training, upload
from pages.data_owners.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import fields
from pages.shared.screen import answer_tabs, layout, plots
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    try:
        own = upload.find_table()
        found = cached.owners_found(parameters, data, None if own is None else own.dataset)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    answer = build_answer(data, parameters, found)
    with places.figure:
        plots.draw(answer.plots["owners-map"]())
    of: dict[str, answer_tabs.Content] = {
        "Accuracy": lambda: training.show(parameters),
        "Theory": {
            "Bounds": lambda: tabs.show_bounds(answer),
            "Unequal owners": lambda: tabs.show_unequal(answer),
        },
    }
    answer_tabs.show(places, QUESTION, answer, of, lambda: tabs.show_files(answer), key="owners_card")


layout.show(QUESTION, body)
