"""Choose privately: a private copy or a direct choice, and what either costs."""

import streamlit as st

from dpcore.common.errors import InvalidInput
from dpcore.private_choice.fixed_point import checked_users
from dpcore.private_choice.parameters import PrivateParameters
from pages.private_choice import actions, cached, card, inputs, tabs, work
from pages.private_choice import figures as private_charts
from pages.private_choice.question import QUESTION
from pages.shared.base import keys
from pages.shared.fields import fields
from pages.shared.figures import figures
from pages.shared.screen import answer_tabs, layout
from pages.shared.session import session

data = session.dataset()


def body(places: layout.Places) -> None:
    """Read the inputs, and show what either way costs, with its button."""
    actions.show_account()
    parameters = inputs.read(places)
    if parameters is not None:
        st.session_state[keys.PAGE_PARAMETERS] = parameters
        try:
            checked_users(session.original().dataset.histogram)
            checked_users(data.histogram)
        except InvalidInput as refused:
            parameters = None
            with places.notes:
                fields.say(refused.problems)
    if parameters is not None:
        show_costs(parameters, places)
    with places.answer:
        actions.show(parameters, data)


def show_costs(parameters: PrivateParameters, places: layout.Places) -> None:
    """The figure of costs, the card, and the tabs."""
    view = cached.private_answer(data.digest, parameters, data)
    copies = work.over_epsilon(data, parameters)
    with places.figure:
        figures.show_picture(private_charts.over_epsilon_picture(view, copies, data.provenance))
        tabs.show_progress(work.CURVES.key, copies)
    of = {
        "Why the number leaks": lambda: tabs.leak(view, data),
        "More or fewer users": lambda: tabs.over_users(view, data),
    }
    answer_tabs.show(
        places,
        QUESTION,
        card.card(view, data, copies.at),
        of,
        lambda: tabs.files(view, data, copies),
        key="private_card",
        behind=lambda answer: tabs.behind(view, answer),
    )


layout.show(QUESTION, body)
