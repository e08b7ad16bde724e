"""Data owners: who should train together, by the bounds and by training."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from pages.data_owners import audit, cached, card, figures, inputs, tabs, training, upload
from pages.data_owners.question import QUESTION
from pages.shared import answer_tabs, fields, keys, layout, session
from pages.shared import figures as shared_figures

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and show the answer."""
    parameters = inputs.read(places)
    if parameters is None:
        return
    try:
        own = upload.in_use()
        view = cached.owners_answer(parameters, data, None if own is None else own.dataset)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    with places.figure:
        shared_figures.show_picture(figures.map_picture(view))
    of = {
        "Accuracy": lambda: training.show(parameters),
        "Why not the paper's algorithm?": audit.show,
        "Bounds": lambda: tabs.show_bounds(view),
        "Unequal owners": lambda: tabs.show_unequal(view, data),
    }
    answer = card.card(view, data)
    answer_tabs.show(places, QUESTION, answer, of, lambda: tabs.show_files(view, data), key="owners_card")


layout.show(QUESTION, body)
