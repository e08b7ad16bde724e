"""Data owners: who should train together, by the bounds and by training."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.data_owners.parameters import OwnersParameters
from pages.data_owners import audit, cached, card, figures, inputs, tabs, training, upload
from pages.data_owners.answer import OwnersView
from pages.data_owners.question import QUESTION
from pages.shared import cards, fields, keys, layout, lazy_tabs, session
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
    answer = card.card(view, data)
    with places.figure:
        shared_figures.show_picture(figures.map_picture(view))
    with places.answer:
        cards.answer(answer, key="owners_card")
    with places.below:
        show_tabs(view, parameters, answer)


def show_tabs(view: OwnersView, parameters: OwnersParameters, answer: cards.AnswerCard) -> None:
    """What stands behind the answer, and the other figures."""
    of = {
        layout.BEHIND: lambda: cards.behind(answer),
        "Accuracy": lambda: training.show(parameters),
        "Why not the paper's algorithm?": audit.show,
        "Bounds": lambda: tabs.show_bounds(view),
        "Unequal owners": lambda: tabs.show_unequal(view, data),
        layout.DOWNLOADS: lambda: tabs.show_files(view, data),
        layout.COMPUTED: lambda: st.markdown(QUESTION.formula()),
    }
    lazy_tabs.draw(of, QUESTION.key("tabs"))


layout.show(QUESTION, body)
