"""Per group: the best pair of bounds for a release per group, and what scaling users instead would save."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from pages.per_group import answer as per_group_view
from pages.per_group import cached, card, figures, inputs, tabs
from pages.per_group.question import QUESTION
from pages.shared import cards, fields, keys, layout, lazy_tabs, missing, session
from pages.shared import figures as shared_figures

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs and draw the answer."""
    if data.pairs is None:
        with places.notes:
            missing.say(data, "a group in each row", "Bring data with a column of groups")
        return
    parameters = inputs.read(data, places)
    if parameters is None:
        return
    try:
        with places.notes, st.spinner("Looking for the best pair …", show_time=True):
            view = cached.per_group_answer(data.digest, parameters, data)
    except InvalidInput as refused:
        with places.notes:
            fields.say(refused.problems)
        return
    st.session_state[keys.PAGE_PARAMETERS] = parameters
    answer = card.card(view, data)
    with places.answer:
        cards.answer(answer, key="per_group_card")
    with places.figure:
        shared_figures.show(
            figures.map_figure(view),
            "per_group_error",
            figures.map_alt(view),
            figures.map_columns(view),
            data.provenance,
        )
    with places.below:
        show_tabs(view, answer)


def show_tabs(view: per_group_view.PerGroupView, answer: cards.AnswerCard) -> None:
    """What stands behind the answer, and the other figures."""
    of = {
        layout.BEHIND: lambda: tabs.behind(view, data, answer),
        "Scaling instead": lambda: tabs.scaling(view, data),
        "Error of each group": lambda: tabs.groups(view, data),
        layout.DOWNLOADS: lambda: tabs.show_files(view, data),
        layout.COMPUTED: tabs.computed,
    }
    lazy_tabs.draw(of, QUESTION.key("tabs"))


layout.show(QUESTION, body)
